use mxrt_graph::*;
#[test]
fn all_files() {
    let mut files: Vec<_> = Vec::new();
    let mut dirs = vec![std::path::PathBuf::from("/work/shared/models"), "/work/shared/conformance/data/graphs".into()];
    while let Some(d) = dirs.pop() {
        for e in std::fs::read_dir(d).unwrap() {
            let p = e.unwrap().path();
            if p.is_dir() {
                dirs.push(p)
            } else if p.to_string_lossy().ends_with("symbol.json") {
                files.push(p)
            }
        }
    }
    files.sort();
    let mut missing = std::collections::BTreeMap::new();
    for f in files {
        let text = std::fs::read_to_string(&f).unwrap();
        match Symbol::load_json(&text) {
            Ok(l) => {
                let same = l.symbol.to_json() == text;
                println!("{} same={} warnings={} ", f.display(), same, l.warnings.len());
                if !same {
                    std::fs::write(
                        format!("/tmp/graph-{}", f.file_name().unwrap().to_string_lossy()),
                        l.symbol.to_json(),
                    )
                    .unwrap();
                }
                if l.symbol.topo().len() < 20 {
                    println!("{}", symbol::text(&l.symbol));
                }
            }
            Err(GraphError::UnknownOperators(u)) => {
                for o in u {
                    *missing.entry(o.op).or_insert(0) += 1;
                }
            }
            Err(e) => println!("{} ERROR {e}", f.display()),
        }
    }
    println!("missing {missing:?}");
}
