//! Rows of settings.

use super::value::{Given, Value};

/// Owner of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// the server
    Server,
    /// one model, or all of them
    Models,
    /// one model
    OneModel,
}

/// Row of a table of settings.
pub struct Setting<C: 'static> {
    /// key in files
    pub key: &'static str,
    /// placeholder of the value in help
    pub metavar: &'static str,
    /// description for help
    pub text: &'static str,
    /// owner of the setting
    pub scope: Scope,
    /// few servers need it: `--help-all` describes it, `--help` does not
    pub rare: bool,
    /// reads a value; an error says what was expected
    pub(crate) read: fn(&mut C, Value<'_>) -> Result<(), String>,
    /// returns the present value; none if it is not set
    pub(crate) show: fn(&C) -> Option<Given>,
}

impl<C> Setting<C> {
    /// Returns the row of a setting that few servers need.
    pub(super) const fn rare(self) -> Setting<C> {
        Setting { rare: true, ..self }
    }

    /// Returns the row of a setting that cannot be given for all models.
    pub(super) const fn one_model(self) -> Setting<C> {
        Setting { scope: Scope::OneModel, ..self }
    }

    /// Returns the row of a setting whose key is not the name of its field.
    pub(super) const fn key(self, key: &'static str) -> Setting<C> {
        Setting { key, ..self }
    }
}

impl<C: Default> Setting<C> {
    /// Returns the default value in the form in which people write it; `None` if there is none.
    pub fn default(&self) -> Option<String> {
        (self.show)(&C::default()).filter(|given| !matches!(given, Given::Table(t) if t.is_empty())).map(|g| g.words())
    }
}

/// Makes a structure of settings, its default values and the table of its settings. A setting is
///
/// ```text
/// /// description of the field, and of the setting for help
/// field: Type = default, KIND, "PLACEHOLDER", flag, flag(value);
/// ```
///
/// where flags are methods of `Setting` that return it, such as `rare`. Fields after `and` are no
/// settings.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $Settings:ident, table $TABLE:ident of $Scope:ident {
            $(
                $(#[doc = $text:literal])+
                $field:ident: $Type:ty = $default:expr, $kind:expr, $metavar:literal
                $(, $flag:ident $(($value:expr))?)*;
            )+
        }
        $(and {
            $(
                $(#[$about_other:meta])*
                $other:ident: $Other:ty;
            )+
        })?
    ) => {
        $(#[$about])*
        // Descriptions are printed in terminals, too: their brackets are no links.
        #[allow(rustdoc::bare_urls, rustdoc::broken_intra_doc_links)]
        #[derive(Clone, Debug)]
        pub struct $Settings {
            $(
                $(#[doc = $text])+
                pub $field: $Type,
            )+
            $($(
                $(#[$about_other])*
                pub(crate) $other: $Other,
            )+)?
        }

        impl Default for $Settings {
            fn default() -> $Settings {
                $Settings { $($field: $default,)+ $($($other: Default::default(),)+)? }
            }
        }

        #[doc = concat!("Settings of a [`", stringify!($Settings), "`].")]
        pub static $TABLE: &[$crate::settings::Setting<$Settings>] = &[$(
            $crate::settings::Setting {
                key: stringify!($field),
                metavar: $metavar,
                text: concat!($($text),+).trim_ascii_start(),
                scope: $crate::settings::Scope::$Scope,
                rare: false,
                read: |to: &mut $Settings, value| ($kind.read)(&mut to.$field, value),
                show: |of: &$Settings| ($kind.show)(&of.$field),
            }
            $(.$flag($($value)?))*,
        )+];
    };
}

pub(super) use settings;
