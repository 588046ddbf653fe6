//! What is there is asked for, what is missing is an ignored test: `cargo test -p boltkv-needs` counts one.

#[boltkv_needs::program("sh", "ls")]
#[test]
fn a_test_runs_where_all_that_it_needs_is_there() {}

#[boltkv_needs::program("sh", "no-program-has-this-name")]
#[test]

fn a_test_is_ignored_where_something_is_missing() {
    let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(required, "it was not ignored");
}
