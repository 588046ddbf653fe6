//! The help: every command has one, with an example, and the exit codes are told.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::{boltkv, run};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Every command that does something, with the commands that it is one of, as the help lists them.
fn commands() -> Vec<Vec<String>> {
    let (mut groups, mut commands) = (vec![Vec::new()], Vec::new());
    while let Some(group) = groups.pop() {
        let help = run(group.iter().map(String::as_str).chain(["--help"])).done_text();
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names: Vec<_> = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
        if names.is_empty() {
            commands.push(group);
            continue;
        }
        for name in names.into_iter().filter(|name| !name.is_empty() && *name != "help") {
            groups.push(group.iter().cloned().chain([name.to_owned()]).collect());
        }
    }
    commands
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in commands() {
        let help = run(command.iter().map(String::as_str).chain(["--help"])).done_text();
        // What is peeked at stands before what is asked about it.
        let shown = if command.len() == 3 && command[1] == "peek" { &command[..2] } else { &command[..] };
        let example = format!(":\n  boltkv {}", shown.join(" "));
        assert!(help.contains(&format!("Example{example}")) || help.contains(&format!("Examples{example}")), "{help}");
        assert!(!help.contains('\u{1b}'), "colours are for terminals: {help}");
        assert!(!help.contains("\\\""), "a shell would take this otherwise than it is meant: {help}");
    }
}

/// What clap does not wrap, and would be wrapped in the middle of a word by a terminal of the usual width.
#[test]
fn examples_fit_a_line() {
    for command in commands() {
        let help = boltkv(command.iter().map(String::as_str).chain(["--help"])).env("COLUMNS", "100").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let examples = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        let long: Vec<_> =
            examples.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("  ")).collect();
        assert!(long.is_empty(), "{command:?}: the rest of a line that is too long: {long:?}");
    }
}

#[test]
fn every_command_on_a_file_prints_json_if_asked() {
    let commands: Vec<_> = commands().into_iter().filter(|command| command[0] == "file").collect();
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands {
        let help = run(command.iter().map(String::as_str).chain(["--help"])).done_text();
        assert!(help.contains("--json"), "{command:?}: {help}");
    }
}

#[test]
fn a_command_on_a_file_needs_a_file() {
    for command in
        ["info", "buckets", "keys", "get", "stats", "check", "dump", "page", "page-item", "pages", "inspect", "tree"]
    {
        let ran = run(["file", command]);
        assert_eq!(ran.code, Some(2), "{command}");
        assert!(ran.stderr.contains("Usage: boltkv file"), "{command}: {}", ran.stderr);
    }
}

#[test]
fn the_exit_codes_are_told() {
    let help = run(["--help"]).done_text();
    assert!(help.contains("Exit codes:\n  0  done\n  1  not found"), "{help}");
    assert!(help.contains("of `health`: no answer") && help.contains("\n  130, 143\n"), "{help}");
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(run(["--version"]).done_text(), format!("boltkv {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_is_no_command_is_a_mistake_of_usage() {
    assert_eq!(run(["frobnicate"]).code, Some(2));
    assert_eq!(run([""; 0]).code, Some(2));
}

/// What hands type that know `redis-cli`, `etcdctl` or `bbolt`, and what they are told.
#[test]
fn what_other_programs_call_it_leads_to_what_it_is_called_here() {
    for (typed, tip) in [
        ("GET hello", "in small letters: get"),
        ("ls", "`boltkv scan`"),
        ("keys", "`boltkv scan`"),
        ("rm hello", "`boltkv delete KEY`"),
        ("dbsize", "`boltkv scan --count`"),
        ("check my.db", "`boltkv file check FILE`"),
        ("STATS my.db", "in small letters: stats"),
        ("STATS my.db", "`boltkv file stats FILE"),
        ("version", "`boltkv --version`"),
        ("-v", "`boltkv --version`"),
        ("get hello -p 7878", "--addr HOST:PORT"),
        ("get hello --endpoints=localhost", "--addr HOST:PORT"),
        ("get user: --prefix", "`boltkv scan PREFIX`"),
        ("del user: --prefix", "`boltkv delete-range --prefix PREFIX`"),
        ("snapshot save my.db", "`boltkv backup FILE`"),
        ("mget red green", "`boltkv get KEY…`"),
        ("flushall", "`boltkv bucket delete default`"),
        ("setex greeting 10 hello", "--ttl 10s"),
        ("set greeting hello --ex 10", "--ttl 10s"),
        ("info", "`boltkv stats`"),
        ("info", "`boltkv file info FILE`"),
        ("serve --port 7878", "--listen HOST:PORT"),
        ("serve my.db", "--db FILE"),
        ("set greeting hello world", "in quotes"),
        ("serve --requirepass secret", "--tokens FILE"),
        ("hset user:7 name ada", "a hash is a bucket"),
        ("servee", "'serve'"),
        ("server", "`boltkv serve --db FILE`"),
        ("set a 1 ex 10", "--ttl 10s"),
        ("set a 1 NX", "--if-absent"),
        ("decr visits", "`boltkv incr KEY -1`"),
        ("select 1", "`--bucket PATH`"),
        ("keys", "`boltkv file keys FILE BUCKET...`"),
        ("compact my.db", "`boltkv file compact --output"),
        ("shutdown", "SIGTERM"),
        ("file ls my.db", "`boltkv file buckets FILE`"),
        ("file scan my.db default", "`boltkv file peek FILE scan BUCKET` prints the entries"),
        ("file put my.db users ada lovelace", "`boltkv serve --db FILE`"),
        ("file shrink my.db", "`boltkv file compact`"),
        ("compaction", "`boltkv file compact`"),
        ("open my.db", "`boltkv serve --db FILE`"),
        ("stat users", "`boltkv bucket stat PATH`"),
        ("stat my.db", "`boltkv file stats FILE`"),
        ("getset a b", "redis-cli"),
        ("append a b", "redis-cli"),
        ("type a", "redis-cli"),
        ("lock jobs", "--if-absent --ttl 30s"),
        ("lpush jobs a", "lists, sets, sorted sets and streams are not there"),
        ("sadd tags a", "lists, sets, sorted sets and streams are not there"),
        ("member list", "one server serves a file"),
        ("alarm list", "`boltkv health`"),
        ("get a --print-value-only", "the value alone"),
        ("set a b --nx", "--if-absent"),
        ("set a b --xx", "--if-present"),
        ("restore app.backup.db", "a backup alone needs no restore"),
    ] {
        assert_tip(typed, tip);
    }
}

#[test]
fn several_words_of_other_programs_lead_to_what_they_are_called_here() {
    for (typed, tip) in [
        ("snapshot restore app.db", "`boltkv restore`"),
        ("client list", "`boltkv clients`"),
        ("clients list", "`boltkv clients`"),
        ("bucket rename a b", "`boltkv bucket move PATH NEW_PATH`"),
        ("bucket sequence users 5", "`boltkv bucket set-sequence PATH N`"),
        ("slowlog get", "`boltkv slowlog`"),
        ("config get save", "`boltkv config show`"),
        ("file cat my.db", "`boltkv file get FILE BUCKET KEY`"),
    ] {
        assert_tip(typed, tip);
    }
}

/// What belongs elsewhere on the line.
#[test]
fn what_stands_in_the_wrong_place_is_led_to_the_right_one() {
    for (typed, tip) in [
        ("export übung.jsonl", "--output FILE says where to write"),
        ("file compact a.db b.db", "--output FILE says where to write"),
        ("file import new.db x.jsonl", "--input FILE says what to read"),
        ("file compact a.db -o -x.db", "behind `=`: -o=-x.db"),
        ("--addr localhost:1 get x", "--addr goes behind the command: boltkv get --addr …"),
        ("--addr=localhost:1 get x", "--addr goes behind the command: boltkv get --addr …"),
        ("--json bucket list", "--json goes behind the command: boltkv bucket list --json"),
        ("-n 3 scan", "-n goes behind the command: boltkv scan -n …"),
        ("file --json check u.db", "--json goes behind the command: boltkv file check --json"),
        ("bucket --addr X list", "--addr goes behind the command: boltkv bucket list --addr …"),
        ("-p 7878 get k", "--addr HOST:PORT"),
        ("-n 1 get k", "--bucket PATH"),
        ("-h localhost -p 7878 get k", "--addr HOST:PORT"),
        ("get hello -h localhost", "--addr HOST:PORT"),
        ("bucket create -b x", "the bucket stands without an option: boltkv bucket create PATH"),
        ("file get -b users my.db ada", "the bucket stands without an option: boltkv file get FILE BUCKET KEY"),
        ("file check --db app.db", "the file stands without an option: boltkv file check FILE"),
        ("file get --db app.db users ada", "the file stands without an option: boltkv file get FILE BUCKET KEY"),
        ("file peek --file=app.db tree", "the file stands without an option: boltkv file peek FILE "),
        ("file export -b users my.db", "`boltkv export` takes --bucket"),
        ("scan --from -5", "behind `=`: --from=-5"),
        ("file check -dash.db", "comes after `--`: -- -dash.db"),
        ("set x --foo", "comes after `--`: -- --foo"),
    ] {
        assert_tip(typed, tip);
    }
}

#[test]
fn the_help_is_printed_where_no_host_stands_behind_h() {
    for typed in ["-h", "get -h", "-h get", "get -h --addr localhost", "clients -h kill", "file check -h my.db"] {
        assert!(run(typed.split(' ')).done_text().contains("Usage: boltkv"), "{typed}");
    }
}

#[test]
fn a_value_that_cannot_be_used_is_told_by_what_has_given_it_and_a_number_in_plain_words() {
    let said = |command: &mut Command| {
        let ran: crate::common::Ran = command.output().unwrap().into();
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        ran.stderr.lines().next().unwrap().to_owned()
    };
    let of_variable = said(boltkv(["get", "hello"]).env("BOLTKV_ADDR", ":7878"));
    assert_eq!(of_variable, "error: invalid value ':7878' for 'BOLTKV_ADDR': no host before the port");
    let typed = said(boltkv(["get", "hello", "--addr", ":7878"]).env("BOLTKV_ADDR", ":7878"));
    assert!(typed.contains("'--addr <ADDRESS>'"), "{typed}");
    for words in ["incr cnt 1.5", "clients kill x", "file page my.db x", "slowlog -n x", "scan --limit x"] {
        let said = said(&mut boltkv(words.split(' ')));
        assert!(said.starts_with("error: invalid value ") && said.ends_with(": not a whole number"), "{said}");
    }
    for (words, why) in [
        ("set k v --ttl -5s", "'-5s' for '--ttl <TIME>': it must be longer than zero"),
        ("set k v --ttl -5", "'-5' for '--ttl <TIME>': it must be longer than zero"),
        (
            "ping --timeout -1ms",
            "'-1ms' for '--timeout <TIME>': it must be longer than zero: no answer comes in no time",
        ),
        ("expire k -5s", "'-5s' for '[TIME]': it must not be below zero"),
        ("set k v --expires -5", "'-5' for '--expires <TIME>': not a time such as "),
        ("serve --request-timeout -1s", "'-1s' for '--request-timeout <TIME>': it must not be below zero"),
        ("serve --max-frame -1MiB --read-only", "'-1MiB' for '--max-frame <SIZE>': it must not be below zero"),
        ("scan --limit -1 users", "'-1' for '--limit <N>': it must not be below zero"),
        ("bench -n -1", "'-1' for '--requests <N>': it must not be below zero"),
        ("file check app.db --timeout -2.5", "'-2.5' for '--timeout <TIME>': it must not be below zero"),
    ] {
        let said = said(&mut boltkv(words.split(' ')));
        assert!(said.starts_with(&format!("error: invalid value {why}")), "{said}");
    }
    let too_large = said(&mut boltkv(["scan", "--limit", "99999999999999999999"]));
    assert!(too_large.contains("too large"), "{too_large}");
    let of_server = run_with("BOLTKV_MAX_CONNECTIONS", "abc", ["config", "check"]);
    assert!(of_server.contains("BOLTKV_MAX_CONNECTIONS") && of_server.contains("not a whole number"), "{of_server}");
}

fn run_with<const N: usize>(variable: &str, value: &str, args: [&str; N]) -> String {
    String::from_utf8(boltkv(args).env(variable, value).output().unwrap().stderr).unwrap()
}

#[track_caller]
fn assert_tip(typed: &str, tip: &str) {
    let ran = run(typed.split(' '));
    assert_eq!(ran.code, Some(2), "{typed}");
    let tips: Vec<_> = ran.stderr.lines().filter(|line| line.contains("tip: ")).collect();
    assert!(tips.iter().any(|line| line.contains(tip)), "{typed}: {}", ran.stderr);
}

/// A number or an option that is not known is no value that was meant, and nobody is led to what removes something.
#[test]
fn what_would_lead_astray_is_not_suggested() {
    for typed in ["set --ttl -5s b 1", "persist a --json", "import --format csv", "dele a"] {
        let ran = run(typed.split(' '));
        assert_eq!(ran.code, Some(2), "{typed}");
        assert!(!ran.stderr.contains("as a value"), "{typed}: {}", ran.stderr);
    }
    for typed in ["file check a.db b.db", "file compact a.db b.db", "export übung.jsonl", "get größe --größe"] {
        let ran = run(typed.split(' '));
        assert_eq!(ran.code, Some(2), "{typed}");
        assert!(!ran.stderr.contains("begins with a dash"), "{typed}: {}", ran.stderr);
    }
    // An option of other commands is no misspelt one of this.
    assert!(!run(["config", "check", "--json"]).stderr.contains("tip:"));
    assert!(run(["config", "check", "--jurnal", "off"]).stderr.contains("'--journal'"));
    let ran = run(["edl", "a"]);
    assert!(!ran.stderr.contains("'del'"), "{}", ran.stderr);
    assert!(run(["delet", "a"]).stderr.contains("'delete'"));
}

#[test]
fn the_usage_that_comes_with_a_mistake_is_that_of_the_help_whatever_the_environment_says() {
    let usage = "Usage: boltkv set [OPTIONS] <KEY> [VALUE]\n";
    assert!(run(["set", "--help"]).done_text().contains(usage));
    for typed in [&["set"][..], &["put"], &["set", "--frob", "a"]] {
        for address in [None, Some("127.0.0.1:7878")] {
            let output = boltkv(typed).envs(address.map(|address| ("BOLTKV_ADDR", address))).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains(usage), "{typed:?} at {address:?}: {said}");
        }
    }
}

#[test]
fn aliases_do_what_the_commands_do() {
    for (alias, command) in
        [("put", "set"), ("del", "delete"), ("bucket ls", "bucket list"), ("bucket rm", "bucket delete")]
    {
        let help = |words: &str| run(words.split(' ').chain(["--help"])).done_text();
        assert_eq!(help(alias), help(command));
    }
}

#[boltkv_needs::program("bash")]
#[test]
fn a_shell_can_read_what_it_is_to_complete() {
    let script = run(["completion", "bash"]).done();
    assert!(String::from_utf8_lossy(&script).contains("--durability"));
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(bash.wait().unwrap().success());
    for shell in ["zsh", "fish"] {
        assert!(run(["completion", shell]).done_text().contains("surgery"), "{shell}");
    }
    assert_eq!(run(["completion", "tcsh"]).code, Some(2));
}
