//! Looking operators up by name.

use super::OpDef;
use mxrt_engine::ForkSafeOnce;
use std::collections::HashMap;

/// All operators, by canonical name and alias.
pub struct Registry {
    by_name: HashMap<&'static str, &'static OpDef>,
    ops: Vec<&'static OpDef>,
}

impl Registry {
    fn new(table: &'static [&'static [OpDef]]) -> Registry {
        let ops: Vec<&'static OpDef> = table.iter().flat_map(|family| family.iter()).collect();
        let mut by_name = HashMap::new();
        for op in &ops {
            for name in std::iter::once(&op.name).chain(op.aliases) {
                let earlier = by_name.insert(*name, *op);
                debug_assert!(earlier.is_none(), "two operators are called {name}");
            }
        }
        Registry { by_name, ops }
    }

    /// The operator with this canonical name or alias.
    pub fn get(&self, name: &str) -> Option<&'static OpDef> {
        self.by_name.get(name).copied()
    }

    /// All operators, in the order of the table.
    pub fn ops(&self) -> &[&'static OpDef] {
        &self.ops
    }
}

/// The operators of this build.
pub fn registry() -> &'static Registry {
    static REGISTRY: ForkSafeOnce<Registry> = ForkSafeOnce::new();
    REGISTRY.get_or_init(|| {
        // Whoever binds a kernel was here before, inside the fork gate.
        mxrt_kernels::prepare();
        Registry::new(crate::table::TABLE)
    })
}
