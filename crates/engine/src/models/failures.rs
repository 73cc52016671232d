//! Models of what failures do on their way.

use super::*;

/// Kills `whole-write-does-not-heal`.
#[test]
fn a_failure_reaches_whoever_comes_after_it() {
    model(|| {
        let (var, out, ran) = (Var::new(), Var::new(), Watched::new());
        push(&[(&var, Access::Write)], Box::new(|| Some(failure())));
        let other = {
            let (var, out, ran) = (var.clone(), out.clone(), ran.clone());
            thread::spawn(move || push(&[(&var, Access::Read), (&out, Access::Write)], adds(&ran)))
        };
        push(&[(&var, Access::Write)], Box::new(|| None));
        other.join().unwrap();
        // The reader came before the healing write and inherited, or after it and ran.
        assert_eq!(out.failure().is_none(), ran.get() == 1);
        assert!(var.failure().is_none());
    });
}

#[test]
fn a_partial_write_beside_a_whole_one_heals_only_in_its_place() {
    model(|| {
        let var = Var::new();
        push(&[(&var, Access::Write)], Box::new(|| Some(failure())));
        let ran = Watched::new();
        let other = {
            let (var, ran) = (var.clone(), ran.clone());
            thread::spawn(move || push(&[(&var, Access::Update)], adds(&ran)))
        };
        push(&[(&var, Access::Write)], Box::new(|| None));
        other.join().unwrap();
        // Before the whole write it is skipped and the write heals; after it it runs. Healthy
        // either way.
        assert!(var.failure().is_none());
        assert!(ran.get() <= 1);
        assert_eq!(var.version(), 3);
    });
}

#[test]
fn a_failure_passes_through_a_chain_that_grows_meanwhile() {
    model(|| {
        let (a, b, c) = (Var::new(), Var::new(), Var::new());
        let other = {
            let (b, c) = (b.clone(), c.clone());
            thread::spawn(move || push(&[(&b, Access::Read), (&c, Access::Write)], Box::new(|| None)))
        };
        push(&[(&a, Access::Write)], Box::new(|| Some(failure())));
        push(&[(&a, Access::Read), (&b, Access::Write)], Box::new(|| panic!("ran on a failed input")));
        other.join().unwrap();
        let (from, to) = (b.failure().unwrap(), c.failure());
        assert!(a.failure().is_some_and(|f| f.same_event(&from)));
        assert!(to.is_none_or(|f| f.same_event(&from)));
    });
}

#[test]
fn single_outputs_fail_alone_while_their_readers_arrive() {
    model(|| {
        let (good, bad, out) = (Var::new(), Var::new(), Var::new());
        let op = granted(&[(&good, Access::Write), (&bad, Access::Write)]);
        let reader = {
            let (good, bad, out) = (good.clone(), bad.clone(), out.clone());
            thread::spawn(move || {
                push(&[(&good, Access::Update)], Box::new(|| None));
                push(&[(&bad, Access::Read), (&out, Access::Write)], Box::new(|| panic!("ran on a failed input")));
            })
        };
        complete(op, &[(1, failure())]);
        reader.join().unwrap();
        assert!(good.failure().is_none() && bad.failure().is_some() && out.failure().is_some());
    });
}

/// Kills `nothing-inherited` and `failure-not-stored`.
#[test]
fn a_failure_goes_through_a_chain_as_one_event() {
    model(|| {
        let (x, y, z) = (Var::new(), Var::new(), Var::new());
        let bad = held(&x, Access::Write, fails());
        let finisher = thread::spawn(move || finish(bad));
        push(&[(&x, Access::Read), (&y, Access::Write)], nothing());
        push(&[(&y, Access::Read), (&z, Access::Write)], nothing());
        finisher.join().unwrap();
        let [fx, fy, fz] = [&x, &y, &z].map(|v| v.failure().expect("a dependant of a failed op is clean"));
        assert!(fx.same_event(&fy) && fx.same_event(&fz));
    });
}

/// Kills `last-failed-input-inherited`.
#[test]
fn of_two_failures_the_first_declared_is_inherited_whichever_comes_first() {
    model(|| {
        let (x, y, out) = (Var::new(), Var::new(), Var::new());
        let (one, two) = (held(&x, Access::Write, fails()), held(&y, Access::Write, fails()));
        push(&[(&y, Access::Read), (&x, Access::Read), (&out, Access::Write)], nothing());
        let finisher = thread::spawn(move || finish(one));
        finish(two);
        finisher.join().unwrap();
        assert!(out.failure().unwrap().same_event(&y.failure().unwrap()));
    });
}

/// Kills `whole-write-does-not-heal`.
#[test]
fn a_whole_write_heals_whatever_else_is_pushed() {
    model(|| {
        let var = Var::new();
        let bad = held(&var, Access::Write, fails());
        let finisher = thread::spawn(move || finish(bad));
        push(&[(&var, Access::Update)], nothing());
        let kept = var.clone();
        let look = Box::new(move || {
            // SAFETY: the variable is granted to this op.
            assert!(unsafe { (*kept.inner().failure.get()).is_some() }, "a partial write healed");
            None
        });
        push(&[(&var, Access::Write)], look);
        finisher.join().unwrap();
        assert!(var.failure().is_none() && var.version() == 3);
    });
}

/// Kills `reader-poisons-parameters`.
#[test]
fn a_failing_reader_leaves_the_parameter_and_other_readers_alone() {
    model(|| {
        let (parameter, bad, good) = (Var::new(), Var::new(), Var::new());
        let other = {
            let (parameter, bad) = (parameter.clone(), bad.clone());
            thread::spawn(move || push(&[(&parameter, Access::Read), (&bad, Access::Write)], fails()))
        };
        push(&[(&parameter, Access::Read), (&good, Access::Write)], nothing());
        other.join().unwrap();
        assert!(parameter.failure().is_none() && good.failure().is_none() && bad.failure().is_some());
    });
}
