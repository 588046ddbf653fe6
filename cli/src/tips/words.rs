//! What hands type that know another program, and how to go on from it.

/// What other programs call a command, and how to go on from it.
pub(super) const COMMANDS: [(&[&str], &str); 29] = [
    (&["rm", "remove", "unset"], "`boltkv delete KEY` removes a key, `boltkv bucket delete PATH` a bucket"),
    (
        &["ls", "list", "keys", "range", "iterate"],
        "`boltkv scan` prints the entries of a bucket, with --keys-only the keys, `boltkv bucket list` the buckets",
    ),
    (&["count", "dbsize", "size"], "`boltkv scan --count` counts the entries of a bucket"),
    (&["exists", "has"], "`boltkv get KEY` ends with exit code 1 where there is no such key"),
    (&["mkbucket", "create"], "`boltkv bucket create PATH` makes a bucket"),
    (&["version"], "`boltkv --version` prints the version"),
    (&["snapshot", "save", "bgsave"], "`boltkv backup FILE` backs up the file of a running server"),
    (&["defrag"], "`boltkv shrink` makes the file of a running server smaller"),
    (&["mget"], "`boltkv get KEY…` takes several keys"),
    (&["mset", "multi", "exec"], "`boltkv txn` does several requests as one transaction"),
    (
        &["hset", "hget", "hgetall", "hdel", "hkeys", "hlen", "hincrby"],
        "a hash is a bucket: `boltkv bucket create default/HASH`, then `set`, `get`, `scan` with --bucket default/HASH",
    ),
    (&["flushall", "flushdb"], "`boltkv bucket delete default` removes the bucket with all that is in it, hashes, too"),
    (&["setex", "psetex", "lease"], "`boltkv set KEY VALUE --ttl 10s` puts what is gone after a time"),
    (
        &["info", "endpoint"],
        "`boltkv stats` prints the server's figures, `boltkv health` says whether it does its work",
    ),
    (&["decr", "decrby", "incrby"], "`boltkv incr KEY -1` takes away, `boltkv incr KEY 5` adds"),
    (&["select", "use"], "`--bucket PATH` says which bucket, with every command; of Redis' databases 0 is `default`"),
    (&["auth", "user", "role", "acl"], "`boltkv token` makes, lists and revokes tokens, by which clients are let in"),
    (
        &["rename", "move"],
        "`boltkv bucket move` renames a bucket; of a key, `boltkv txn` sets the new and deletes the old one",
    ),
    (&["stop", "shutdown", "quit"], "a server ends in peace by SIGTERM, or Ctrl-C where it runs"),
    (&["server", "start", "run"], "`boltkv serve --db FILE` serves a file"),
    (&["monitor", "subscribe"], "`boltkv watch` prints what is committed, as it comes"),
    (
        &["compaction", "vacuum", "bgrewriteaof"],
        "`boltkv shrink` makes the file of a running server smaller, `boltkv file compact` writes a file anew",
    ),
    (&["open"], "`boltkv serve --db FILE` serves a file, `boltkv file tree FILE` shows what is in it"),
    (
        &["stat"],
        "`boltkv stats` prints the server's figures, `boltkv bucket stat PATH` a bucket's, `boltkv file stats FILE` a file's",
    ),
    (
        &["getset", "getdel", "getex", "append", "strlen", "type"],
        "clients of Redis do this, redis-cli for one, on the same port; here are `get`, `set`, `delete` and `txn`",
    ),
    (
        &["lock"],
        "`boltkv set KEY VALUE --if-absent --ttl 30s` takes a lock, `boltkv delete KEY --if-equals VALUE` gives it back",
    ),
    (
        &["member", "elect", "alarm"],
        "there is none: one server serves a file, and `boltkv health` says whether it does its work",
    ),
    (
        &[
            "lpush",
            "rpush",
            "lpop",
            "rpop",
            "lrange",
            "llen",
            "sadd",
            "srem",
            "smembers",
            "sismember",
            "zadd",
            "zrem",
            "zrange",
            "zscore",
            "xadd",
            "xread",
            "pfadd",
            "geoadd",
        ],
        "lists, sets, sorted sets and streams are not there: a bucket has its keys in order, one within it is as good as a set",
    ),
    (&["cli", "shell", "repl"], "each command does one thing; redis-cli and netcat talk to a server, too"),
];

/// What other programs would do with a file.
pub(super) const OF_FILES: [(&[&str], &str); 5] = [
    (
        &["ls", "list", "scan", "range", "iterate"],
        "`boltkv file peek FILE scan BUCKET` prints the entries of a bucket, `boltkv file buckets FILE` the buckets, `boltkv file \
         keys FILE BUCKET` keys, `boltkv file export FILE` everything",
    ),
    (
        &["set", "put", "incr", "delete", "del", "rm", "remove", "bucket", "create", "mkbucket"],
        "a file is written by who serves it: `boltkv serve --db FILE`, then `boltkv set` and the like; `boltkv file import FILE` \
         puts the lines of an export into it",
    ),
    (
        &["cat", "show", "read"],
        "`boltkv file get FILE BUCKET KEY` prints a value, `boltkv file export FILE` everything, `boltkv file dump` a page",
    ),
    (&["count", "size"], "`boltkv file stats FILE` counts keys, pages and bytes"),
    (&["shrink", "defrag", "vacuum"], "`boltkv file compact` writes what is in a file into a smaller one"),
];

/// What other programs call an option, the option of ours that has to be there, and how to go on from it.
pub(super) const OPTIONS: [(&[&str], &str, &str); 11] = [
    (
        &["-p", "-u", "--host", "--hostname", "--port", "--server", "--url", "--endpoint", "--endpoints"],
        "addr",
        "--addr HOST:PORT, or BOLTKV_ADDR, says where the server is",
    ),
    (&["-p", "--host", "--port", "--bind", "--addr", "--address"], "listen", "--listen HOST:PORT says where to listen"),
    (&["-f", "--file", "--path", "--dir", "--data-dir", "--database"], "db", "--db FILE names the file to serve"),
    (
        &["--prefix"],
        "addr",
        "`boltkv scan PREFIX` prints what starts so, `boltkv delete-range --prefix PREFIX` removes it",
    ),
    (&["--print-value-only"], "keys", "the value alone is what is printed"),
    (&["--nx"], "absent", "--if-absent sets only a key that is not there"),
    (&["--xx"], "present", "--if-present sets only a key that is there"),
    (&["--ex", "--px", "--lease"], "ttl", "--ttl 10s says after which time a key is gone"),
    (
        &["--requirepass", "--password", "--auth"],
        "tokens",
        "--tokens FILE says who may: `boltkv token create NAME --right admin --tokens FILE` puts the first one in",
    ),
    (&["-n", "--db"], "bucket", "--bucket PATH says which bucket; of Redis' databases 0 is `default`"),
    (&["-v"], "version", "`boltkv --version` prints the version"),
];

/// The same of several words.
pub(super) const PHRASES: [(&[&str], &str); 8] = [
    (
        &["snapshot restore"],
        "`boltkv restore` makes the file that a backup and a kept journal give; a backup alone needs none: it is copied to the \
         file's place",
    ),
    (&["client list", "clients list", "clients ls"], "`boltkv clients` lists the connections"),
    (&["client kill"], "`boltkv clients kill ID` ends a connection"),
    (&["bucket rename"], "`boltkv bucket move PATH NEW_PATH` gives a bucket another name, too"),
    (&["bucket sequence"], "`boltkv bucket set-sequence PATH N` sets it, `boltkv bucket next-sequence PATH` raises it"),
    (&["slowlog get", "slowlog list"], "`boltkv slowlog` prints them, -n 10 the newest ten"),
    (&["slowlog reset"], "`boltkv slowlog --reset` forgets them"),
    (
        &["config get", "config set", "config list"],
        "`boltkv config show` prints what a server would be told; settings come from its flags, its file and the environment",
    ),
];
