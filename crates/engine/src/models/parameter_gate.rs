//! Models of the parameter gate.

use super::*;

#[test]
fn behind_a_gate_requests_see_whole_sets() {
    model(|| {
        let (gate, first, second) = (Var::new(), Watched::new(), Watched::new());
        let (a, b) = (Var::new(), Var::new());
        let reader = {
            let (gate, first, second) = (gate.clone(), first.clone(), second.clone());
            thread::spawn(move || {
                push(
                    &[(&gate, Access::Read)],
                    Box::new(move || {
                        assert_eq!(first.get(), second.get());
                        None
                    }),
                );
            })
        };
        let (x, y) = (first.clone(), second.clone());
        push(
            &[(&a, Access::Write), (&b, Access::Write), (&gate, Access::Write)],
            Box::new(move || {
                x.add(1);
                y.add(1);
                None
            }),
        );
        reader.join().unwrap();
        assert_eq!((first.get(), gate.version()), (1, 1));
    });
}

#[test]
fn two_requests_behind_a_gate_do_not_exclude_each_other() {
    model(|| {
        let (gate, value) = (Var::new(), Watched::new());
        let request = |gate: Var, value: Arc<Watched>| {
            move || {
                let out = Var::new();
                push(
                    &[(&gate, Access::Read), (&out, Access::Write)],
                    Box::new(move || {
                        value.get();
                        None
                    }),
                );
                // Granted and run within the push: another reader never makes it wait.
                assert_eq!(out.version(), 1);
            }
        };
        let other = thread::spawn(request(gate.clone(), value.clone()));
        request(gate.clone(), value.clone())();
        other.join().unwrap();
        push(&[(&gate, Access::Write)], adds(&value));
        assert_eq!(value.get(), 1);
    });
}
