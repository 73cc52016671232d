//! Tables of measured convolutions: which method was fastest for a signature. As text, one line
//! each.

use crate::cache_class::CacheClass;
use crate::conv::method::Method;
use crate::conv::options::Precision;
use crate::conv::params::Conv2dParams;
use crate::isa::Isa;
use crate::vector_units::{VectorUnits, parse_isa};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// All that a choice of method depends on, except for the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConvSignature {
    /// The instruction set.
    pub isa: Isa,
    /// The units that execute it.
    pub units: VectorUnits,
    /// The second-level cache.
    pub cache: CacheClass,
    /// The numbers that products are made of.
    pub precision: Precision,
    /// Parameters of the convolution.
    pub params: Conv2dParams,
    /// Images, channels, rows and columns of the input.
    pub shape: [usize; 4],
}

/// The fastest method and its time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuned {
    /// The method.
    pub method: Method,
    /// Measured time on one core.
    pub ns: u64,
}

/// Measured choices by signature.
///
/// ```
/// use mxrt_kernels::conv::ConvTable;
/// let line = "avx512 medium single n1 64x56x56 64 k3x3 s1x1 d1x1 p1x1 g1 winograd-f4 280000\n";
/// let table: ConvTable = line.parse().unwrap();
/// assert_eq!(table.len(), 1);
/// assert!(table.to_string().ends_with(line));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvTable {
    entries: BTreeMap<ConvSignature, Tuned>,
}

/// The first line of a written table.
const HEADER: &str = "# isa, cache, precision, images, channels x rows x columns, outputs, kernel, stride, dilation, padding, \
                      groups, method, nanoseconds";

impl ConvTable {
    /// The measurement of a signature.
    pub fn get(&self, signature: &ConvSignature) -> Option<Tuned> {
        self.entries.get(signature).copied()
    }

    /// Takes a choice over, in place of an earlier one.
    pub fn insert(&mut self, signature: ConvSignature, method: Method, ns: u64) {
        self.entries.insert(signature, Tuned { method, ns });
    }

    /// Takes over all choices of another table.
    pub fn merge(&mut self, other: ConvTable) {
        self.entries.extend(other.entries);
    }

    /// Number of choices.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The choices in the order of their signatures.
    pub fn iter(&self) -> impl Iterator<Item = (&ConvSignature, &Tuned)> {
        self.entries.iter()
    }
}

impl fmt::Display for ConvTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for (signature, Tuned { method, ns }) in &self.entries {
            writeln!(f, "{signature} {method} {ns}")?;
        }
        Ok(())
    }
}

impl FromStr for ConvTable {
    type Err = String;

    /// Empty lines and those that begin with `#` are passed over.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut table = ConvTable::default();
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |e: String| format!("line {number}, `{line}`: {e}");
            let (rest, ns) = line.rsplit_once(' ').ok_or_else(|| at("a signature, a method and a time".to_owned()))?;
            let (signature, method) = rest.trim_end().rsplit_once(' ').ok_or_else(|| at("a method".to_owned()))?;
            let ns = ns.parse().map_err(|_| at(format!("`{ns}` is not a number of nanoseconds")))?;
            table.insert(signature.parse().map_err(at)?, method.parse().map_err(at)?, ns);
        }
        Ok(table)
    }
}

impl fmt::Display for ConvSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConvSignature { isa, units, cache, precision, params: p, shape: [n, c, h, w] } = self;
        let Conv2dParams { out_channels, kernel: k, stride: s, dilate: d, pad, groups, .. } = p;
        write!(f, "{isa}{units} {cache} {precision} n{n} {c}x{h}x{w} {out_channels} ")?;
        write!(f, "k{}x{} s{}x{} d{}x{} p{}x{} g{groups}", k[0], k[1], s[0], s[1], d[0], d[1], pad[0], pad[1])
    }
}

impl FromStr for ConvSignature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [isa, cache, precision, images, size, outputs, kernel, stride, dilate, pad, groups] = fields[..] else {
            return Err(format!("a signature has 11 fields, this one {}", fields.len()));
        };
        let [in_channels, height, width] = numbers(size, "")?;
        let ([n], [out_channels], [groups]) = (numbers(images, "n")?, numbers(outputs, "")?, numbers(groups, "g")?);
        let (kernel, stride) = (numbers(kernel, "k")?, numbers(stride, "s")?);
        let (dilate, pad) = (numbers(dilate, "d")?, numbers(pad, "p")?);
        let (isa, units) = parse_isa(isa)?;
        Ok(ConvSignature {
            isa,
            units,
            cache: cache.parse()?,
            precision: precision.parse()?,
            params: Conv2dParams { in_channels, out_channels, kernel, stride, dilate, pad, groups },
            shape: [n, in_channels, height, width],
        })
    }
}

/// Reads `N` numbers, separated by `x`, after a prefix.
fn numbers<const N: usize>(field: &str, prefix: &str) -> Result<[usize; N], String> {
    let wrong = || format!("`{field}` is not `{prefix}` and {N} numbers with x in between");
    let values = field.strip_prefix(prefix).ok_or_else(wrong)?.split('x').map(str::parse);
    let values: Vec<usize> = values.collect::<Result<_, _>>().map_err(|_| wrong())?;
    values.try_into().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::tests::method;

    fn signature(channels: usize) -> ConvSignature {
        ConvSignature {
            isa: Isa::Avx2,
            units: VectorUnits::Whole,
            cache: CacheClass::Large,
            precision: Precision::Bf16,
            params: Conv2dParams {
                stride: [1, 2],
                dilate: [3, 4],
                pad: [5, 6],
                ..Conv2dParams::square(channels, 32, 3)
            },
            shape: [7, channels, 8, 9],
        }
    }

    #[test]
    fn a_table_survives_the_way_through_its_text() {
        let mut table = ConvTable::default();
        for (i, method) in Method::all().enumerate() {
            table.insert(signature(i + 1), method, 1000 + i as u64);
        }
        let text = table.to_string();
        assert!(text.starts_with("# isa"), "{text}");
        assert_eq!(text.parse(), Ok(table.clone()));
        assert_eq!(table.get(&signature(2)), Some(Tuned { method: Method::all().nth(1).unwrap(), ns: 1001 }));
        assert_eq!(table.get(&signature(99)), None);
    }

    #[test]
    fn a_later_line_goes_before_an_earlier_one_of_the_same_signature() {
        let line = |method| format!("{} {method} 5", signature(4));
        let table: ConvTable = format!("{}\n\n# again\n{}\n", line("direct"), line("winograd-f4")).parse().unwrap();
        assert_eq!(table.get(&signature(4)).map(|t| t.method), Some(method("winograd-f4")));
        let mut other: ConvTable = line("direct").parse().unwrap();
        other.merge(table.clone());
        assert_eq!(other, table);
    }

    #[test]
    fn a_bad_line_is_named_with_what_was_expected() {
        let good = format!("{} direct 5", signature(4));
        for (wrong, says) in [
            (good.replace("avx2", "mmx"), "mmx"),
            (good.replace("large", "huge"), "small, medium or large"),
            (good.replace("direct", "slow"), "known: depthwise"),
            (good.replace(" 5", " fast"), "nanoseconds"),
            (good.replace("k3x3", "k3"), "`k` and 2 numbers"),
            (good.replace("g1", ""), "11 fields"),
            ("nothing".to_owned(), "a method"),
        ] {
            let error = format!("# a comment\n{wrong}").parse::<ConvTable>().unwrap_err();
            assert!(error.starts_with("line 2") && error.contains(says), "{error}");
        }
    }
}
