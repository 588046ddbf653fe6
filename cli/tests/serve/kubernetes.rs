//! The pod of docs/deployment.md: what it says is what the server takes, and its probes are answered.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::server::Server;
use crate::common::{boltkv, http};

const DOCUMENT: &str = include_str!("../../../docs/deployment.md");

// Promises: ops-kubernetes.
#[test]
fn the_pod_is_served_as_it_is_written_and_its_probes_are_answered() {
    let (_, section) = DOCUMENT.split_once("## In Kubernetes\n").unwrap();
    let (_, yaml) = section.split_once("```yaml\n").unwrap();
    let (yaml, _) = yaml.split_once("```\n").unwrap();
    let after = |key: &str| yaml.lines().filter_map(|line| line.trim_start().strip_prefix(key)).collect::<Vec<_>>();
    let word = |text: &str| text.trim_matches('"').to_owned();

    let folder = tempfile::tempdir().unwrap();
    let args = after("args: [")[0].strip_suffix(']').unwrap();
    // Ports of its own, and the volume is a folder.
    let here = |text: &str| {
        let ports = word(text).replace(":7878", ":0").replace(":7879", ":0");
        ports.replace("/data/", &format!("{}/", folder.path().display()))
    };
    let mut command = boltkv(args.split(", ").map(here));
    for variable in after("- {name: BOLTKV_") {
        let (name, value) = variable.split_once('}').unwrap().0.split_once(", value: ").unwrap();
        command.env(format!("BOLTKV_{name}"), word(value));
    }
    let server = Server::spawn(&mut command);
    assert!(folder.path().join("boltkv.db").is_file(), "it lies on the volume");
    let mut probes = 0;
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        for rest in after(&format!("{probe}: {{httpGet: {{path: ")) {
            let (page, rest) = rest.split_once(", port: admin}").unwrap();
            assert!(rest.contains("periodSeconds: "), "{rest}");
            assert_eq!(http::get(server.admin(), page).0, 200, "{probe} {page}");
            probes += 1;
        }
    }
    assert_eq!(probes, 3);
    assert_eq!(server.text("SET k v\nGET k\n"), "OK\nv\n");
    assert_eq!(server.stop().code, Some(0));
}
