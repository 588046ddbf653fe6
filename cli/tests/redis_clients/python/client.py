"""A boltkv server as redis-py sees it: `client.py HOST PORT`. Ends with 1 at the first surprise, and names it."""

import pathlib
import sys
import threading
import time

import redis
from redis.exceptions import DataError, ResponseError, WatchError

HOST, PORT = sys.argv[1], int(sys.argv[2])
LARGE = bytes(range(256)) * (5 * 1024 * 4)


def same(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {shown(got)} instead of {shown(wanted)}")


def shown(value):
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def refused(what, kind, start, call):
    """What the client makes of an error: of this kind, with these words."""
    try:
        got = call()
    except kind as error:
        # redis-py takes the word `ERR` off, and leaves others.
        if not str(error).startswith(start):
            sys.exit(f"{what}: refused with {error}")
    else:
        sys.exit(f"{what}: {shown(got)}, where it must be refused")


def client(protocol, **options):
    return redis.Redis(HOST, PORT, db=3, protocol=protocol, client_name="judge", **options)


def session(db, protocol):
    same("ping", db.ping(), True)
    same("echo", db.echo(b"a\r\nb"), b"a\r\nb")
    same("name", db.client_getname(), "judge" if protocol == 2 else b"judge")
    about = db.client_info()
    same("protocol", int(about["resp"]), protocol)
    same("database", int(about["db"]), 3)
    same("library", about["lib-name"].startswith("redis-py"), True)
    same("number of commands", db.command_count() > 80, True)
    same("keys of a command", db.command_getkeys("MSET", "a", 1, "b", 2), ["a", "b"] if protocol == 2 else [b"a", b"b"])
    same("version", db.info("server")["arch_bits"], 64)


def strings(db):
    same("set", db.set("s", "1"), True)
    same("set nx", db.set("s", "2", nx=True), None)
    same("set xx", db.set("none", "2", xx=True), None)
    same("set get", db.set("s", "3", get=True), b"1")
    same("set ex", db.set("s", "4", ex=100), True)
    same("set keepttl", db.set("s", "5", keepttl=True), True)
    same("ttl", 90 <= db.ttl("s") <= 100, True)
    same("set px", db.set("s", "6", px=100_000), True)
    same("pttl", 90_000 <= db.pttl("s") <= 100_000, True)
    same("getex", db.getex("s", persist=True), b"6")
    same("ttl of none", db.ttl("s"), -1)
    same("getdel", db.getdel("s"), b"6")
    same("ttl of nothing", db.ttl("s"), -2)
    same("mset", db.mset({"m1": "a", "m2": "b"}), True)
    same("mget", db.mget("m1", "none", "m2"), [b"a", None, b"b"])
    same("msetnx", db.msetnx({"m2": "c", "m3": "d"}), False)
    same("append", db.append("m1", "bc"), 3)
    same("getrange", db.getrange("m1", 1, -1), b"bc")
    same("setrange", db.setrange("m1", 5, "x"), 6)
    same("padded", db.get("m1"), b"abc\0\0x")
    same("incr", db.incr("n"), 1)
    same("incrby", db.incr("n", 41), 42)
    same("decrby", db.decr("n", 2), 40)
    same("incrbyfloat", db.incrbyfloat("n", 0.5), 40.5)
    same("setbit", db.setbit("bits", 7, 1), 0)
    same("bitcount", db.bitcount("bits"), 1)
    same("type", db.type("m1"), b"string")
    same("copy", db.copy("m1", "m4"), True)
    same("rename", db.rename("m4", "m5"), True)
    same("unlink", db.unlink("m5", "none"), 1)
    same("exists", db.exists("m1", "m1", "m5"), 2)
    dump = db.dump("m2")
    same("restore", db.restore("m6", 0, dump), b"OK")
    same("restored", db.get("m6"), b"b")


def hashes(db):
    same("hset", db.hset("h", mapping={"a": 1, b"\xff\x00": b"\r\n"}), 2)
    same("hset again", db.hset("h", "a", 2), 0)
    same("hget", db.hget("h", "a"), b"2")
    same("hgetall", db.hgetall("h"), {b"a": b"2", b"\xff\x00": b"\r\n"})
    same("hmget", db.hmget("h", "a", "none"), [b"2", None])
    same("hlen", db.hlen("h"), 2)
    same("hexists", db.hexists("h", "none"), False)
    same("hkeys", sorted(db.hkeys("h")), [b"a", b"\xff\x00"])
    same("hincrby", db.hincrby("h", "a", 3), 5)
    same("hincrbyfloat", db.hincrbyfloat("h", "a", 0.25), 5.25)
    same("hsetnx", db.hsetnx("h", "a", 0), 0)
    same("hrandfield", sorted(db.hrandfield("h", 2)), [b"a", b"\xff\x00"])
    same("hdel", db.hdel("h", "a", b"\xff\x00"), 2)
    same("an empty hash is gone", db.exists("h"), 0)


def iterators(db):
    names = {f"key:{number:04}".encode() for number in range(1000)}
    with db.pipeline(transaction=False) as pipe:
        for name in sorted(names):
            pipe.set(name, name[-1:])
            pipe.hset("fields", name, name[-2:])
        same("a pipeline", pipe.execute(), [True, 1] * 1000)
    found = list(db.scan_iter(match="key:*", count=100))
    same("scan", (len(found) >= 1000, set(found)), (True, names))
    same("scan by type", list(db.scan_iter(_type="hash")), [b"fields"])
    fields = dict(db.hscan_iter("fields", count=50))
    same("hscan", fields, {name: name[-2:] for name in names})
    same("keys", sorted(db.keys("key:*7")), sorted(name for name in names if name.endswith(b"7")))
    same("dbsize", db.dbsize() > 1000, True)
    same("randomkey", db.exists(db.randomkey()), 1)


def expiry(db):
    db.set("short", "1", px=30)
    db.set("long", "1")
    same("expire xx", db.expire("long", 100, xx=True), False)
    same("expire", db.expire("long", 100), True)
    same("expire gt", db.expire("long", 50, gt=True), False)
    same("expiretime", db.expiretime("long") > 1_700_000_000, True)
    same("persist", db.persist("long"), True)
    given_up = time.monotonic() + 30
    while db.exists("short") and time.monotonic() < given_up:
        time.sleep(0.01)
    same("what is past its time", db.get("short"), None)


def bytes_of_all_kinds(db):
    key, value = bytes(range(256)), bytes(reversed(range(256)))
    db.set(key, value)
    same("a binary key", db.get(key), value)
    db.set("", "of no bytes")
    same("a key of no bytes", db.get(""), b"of no bytes")
    db.set("empty", "")
    same("a value of no bytes", db.get("empty"), b"")
    db.set("large", LARGE)
    same("a large value", db.get("large") == LARGE, True)
    same("its length", db.strlen("large"), len(LARGE))
    db.hset("hash", "large", LARGE)
    same("a large field", db.hget("hash", "large") == LARGE, True)


def errors(db):
    db.hset("hash", "f", "text")
    db.set("text", "text")
    refused("wrong type", ResponseError, "WRONGTYPE Operation against a key", lambda: db.get("hash"))
    refused("no number", ResponseError, "value is not an integer", lambda: db.incr("text"))
    refused("no number in a hash", ResponseError, "hash value is not an integer", lambda: db.hincrby("hash", "f"))
    refused("no command", ResponseError, "unknown command", lambda: db.execute_command("NONSENSE"))
    refused("too few words", ResponseError, "wrong number of arguments", lambda: db.execute_command("GET"))
    refused("a database too far", ResponseError, "DB index is out of range", lambda: db.select(100_000))
    refused("no value", DataError, "", lambda: db.set("text", None))
    with db.pipeline(transaction=True) as pipe:
        pipe.set("text", "more").hget("text", "f").get("text")
        got = pipe.execute(raise_on_error=False)
    same("one error in a transaction", (got[0], type(got[1]), got[2]), (True, ResponseError, b"more"))


def transactions(db):
    db.set("counter", 0)
    failures = []

    def count():
        for _ in range(25):
            # Somebody always gets through: this ends long before.
            for _ in range(10_000):
                with db.pipeline() as pipe:
                    try:
                        pipe.watch("counter")
                        value = int(pipe.get("counter"))
                        pipe.multi()
                        pipe.set("counter", value + 1)
                        pipe.execute()
                        break
                    except WatchError:
                        continue
                    except Exception as error:
                        failures.append(error)
                        return

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same("failures of threads", failures, [])
    same("what threads counted", db.get("counter"), b"100")


def pool(protocol):
    place = {"host": HOST, "port": PORT, "db": 3, "protocol": protocol}
    connections = redis.BlockingConnectionPool(**place, max_connections=5, timeout=30)
    db = redis.Redis(connection_pool=connections)
    failures = []

    def work(number):
        try:
            for step in range(50):
                db.set(f"pool:{number}:{step}", step)
                same("a pool's value", db.get(f"pool:{number}:{step}"), str(step).encode())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same("failures of a pool", failures, [])
    connections.disconnect()


def locks(db, texts):
    """The lock of the documents."""
    document = pathlib.Path(__file__).resolve().parents[4] / "docs" / "redis.md"
    lock = {}
    exec(document.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], lock)
    take, give_back = lock["take_lock"], lock["give_back_lock"]
    for db in (db, texts):
        token = take(db, "lock", 100)
        same("a lock has a time", 90 <= db.ttl("lock") <= 100, True)
        same("a lock that is taken", take(db, "lock", 100), None)
        same("a lock of somebody else", give_back(db, "lock", b"another"), False)
        same("a lock that is given back", (give_back(db, "lock", token), db.exists("lock")), (True, 0))
        same("a lock that is free", give_back(db, "lock", token), False)


for protocol in (2, 3):
    db = client(protocol)
    db.flushdb()
    session(db, protocol)
    strings(db)
    hashes(db)
    iterators(db)
    expiry(db)
    bytes_of_all_kinds(db)
    errors(db)
    transactions(db)
    pool(protocol)
    texts = client(protocol, decode_responses=True)
    texts.set("größe", "süß")
    same("text", texts.get("größe"), "süß")
    locks(db, texts)
    same("another database", redis.Redis(HOST, PORT, db=4, protocol=protocol).dbsize(), 0)
    db.close()
