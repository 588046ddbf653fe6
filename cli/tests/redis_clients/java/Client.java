import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** A boltkv server as jedis sees it: {@code HOST PORT}. Ends with 1 at the first surprise, and says what it was. */
public final class Client {
    private static void same(String what, Object got, Object wanted) {
        if (!Objects.deepEquals(got, wanted)) {
            throw new AssertionError(what + ": " + got + " instead of " + wanted);
        }
    }

    private static void refused(String what, String words, Callable<?> call) throws Exception {
        Object got;
        try {
            got = call.call();
        } catch (JedisDataException error) {
            same(what + ", " + error.getMessage(), error.getMessage().startsWith(words), true);
            return;
        }
        throw new AssertionError(what + ": " + got + ", where it must be refused");
    }

    private static void session(Jedis db, RedisProtocol protocol) {
        same("ping", db.ping(), "PONG");
        same("echo", db.echo("a\r\nb"), "a\r\nb");
        same("name", db.clientGetname(), "judge");
        String about = db.clientInfo();
        for (String word : List.of(" db=3 ", " lib-name=jedis", " resp=" + protocol.version())) {
            same("what is known of the client, " + word + " in " + about, about.contains(word), true);
        }
        same("version", db.info("server").contains("redis_version:"), true);
    }

    private static void values(Jedis db) throws InterruptedException {
        same("set", db.set("s", "1"), "OK");
        same("set nx", db.set("s", "2", SetParams.setParams().nx()), null);
        same("set xx", db.set("none", "2", SetParams.setParams().xx()), null);
        same("set get", db.setGet("s", "3", SetParams.setParams().ex(100)), "1");
        same("set keepttl", db.set("s", "4", SetParams.setParams().keepTtl()), "OK");
        same("ttl", db.ttl("s") > 90, true);
        same("pexpire", db.pexpire("s", 20), 1L);
        for (int tries = 0; tries < 3000 && db.exists("s"); tries++) {
            Thread.sleep(10);
        }
        same("past its time", db.get("s"), null);
        same("mset", db.mset("m1", "a", "m2", "ü"), "OK");
        same("mget", db.mget("m1", "none", "m2"), Arrays.asList("a", null, "ü"));
        same("incr", db.incr("n"), 1L);
        same("incrby", db.incrBy("n", 41), 42L);
        same("incrbyfloat", db.incrByFloat("n", 0.5), 42.5);
        same("hset", db.hset("h", Map.of("a", "1", "b", "2")), 2L);
        same("hgetall", db.hgetAll("h"), Map.of("a", "1", "b", "2"));
        same("hmget", db.hmget("h", "a", "none"), Arrays.asList("1", null));
        same("hincrby", db.hincrBy("h", "a", 4), 5L);
        same("hdel", db.hdel("h", "a", "b"), 2L);
        same("an empty hash is gone", db.exists("h"), false);
        byte[] every = new byte[256];
        for (int index = 0; index < every.length; index++) {
            every[index] = (byte) index;
        }
        same("a binary key", db.set(every, every), "OK");
        same("a binary value", db.get(every), every);
        byte[] large = new byte[5 << 20];
        Arrays.fill(large, (byte) 200);
        byte[] name = "large".getBytes(StandardCharsets.UTF_8);
        same("a large value", db.set(name, large), "OK");
        same("what is read of it", Arrays.equals(db.get(name), large), true);
    }

    private static void refusals(Jedis db) throws Exception {
        db.set("text", "text");
        db.hset("hash", "f", "text");
        refused("wrong type", "WRONGTYPE Operation", () -> db.get("hash"));
        refused("no number", "ERR value is not an integer", () -> db.incr("text"));
        byte[] nonsense = "NONSENSE".getBytes(StandardCharsets.UTF_8);
        refused("no command", "ERR unknown command", () -> db.sendCommand(() -> nonsense));
    }

    private static void iterators(Jedis db) {
        Set<String> wanted = new HashSet<>();
        List<Response<?>> answers = new ArrayList<>();
        var pipeline = db.pipelined();
        for (int number = 0; number < 1000; number++) {
            String name = String.format("key:%04d", number);
            wanted.add(name);
            answers.add(pipeline.set(name, name));
            answers.add(pipeline.hset("fields", name, name));
        }
        pipeline.sync();
        same("a pipeline's answers", answers.stream().filter(answer -> answer.get() != null).count(), 2000L);
        Set<String> found = new HashSet<>();
        ScanParams some = new ScanParams().match("key:*").count(100);
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = db.scan(cursor, some);
            found.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        same("scan", found, wanted);
        int fields = 0;
        do {
            var page = db.hscan("fields", cursor, new ScanParams().count(100));
            fields += page.getResult().size();
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        same("hscan", fields, 1000);
    }

    private static void transactions(Jedis db, HostAndPort address, JedisClientConfig config) throws Exception {
        var multi = db.multi();
        multi.set("text", "more");
        multi.hget("text", "f");
        multi.get("text");
        List<Object> answers = multi.exec();
        same("an error within", answers.get(1) instanceof JedisDataException, true);
        same("the command behind it", answers.get(2), "more");
        db.set("counter", "0");
        at(4, number -> {
            try (Jedis own = new Jedis(address, config)) {
                for (int done = 0, tries = 0; done < 25; tries++) {
                    same("whether it ever ends", tries < 10_000, true);
                    own.watch("counter");
                    int next = Integer.parseInt(own.get("counter")) + 1;
                    var counting = own.multi();
                    counting.set("counter", Integer.toString(next));
                    done += counting.exec() == null ? 0 : 1;
                }
            }
        });
        same("what was counted", db.get("counter"), "100");
    }

    private static void pool(HostAndPort address, JedisClientConfig config) throws Exception {
        var limits = new ConnectionPoolConfig();
        limits.setMaxTotal(5);
        try (JedisPooled db = new JedisPooled(limits, address, config)) {
            at(20, number -> {
                for (int step = 0; step < 50; step++) {
                    String name = "pool:" + number + ":" + step;
                    same("a pool's set", db.set(name, name), "OK");
                    same("a pool's get", db.get(name), name);
                }
            });
        }
    }

    private interface Work {
        void run(int number) throws Exception;
    }

    /** So many threads at once. */
    private static void at(int threads, Work work) throws Exception {
        ExecutorService all = Executors.newFixedThreadPool(threads);
        try {
            List<Future<?>> started = new ArrayList<>();
            for (int number = 0; number < threads; number++) {
                int mine = number;
                started.add(all.submit(() -> {
                    work.run(mine);
                    return null;
                }));
            }
            for (Future<?> one : started) {
                one.get();
            }
        } finally {
            all.shutdownNow();
        }
    }

    public static void main(String[] args) throws Exception {
        HostAndPort address = new HostAndPort(args[0], Integer.parseInt(args[1]));
        for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
            JedisClientConfig config = DefaultJedisClientConfig.builder()
                    .database(3).clientName("judge").protocol(protocol).timeoutMillis(60_000).build();
            try (Jedis db = new Jedis(address, config)) {
                db.flushDB();
                session(db, protocol);
                values(db);
                refusals(db);
                iterators(db);
                transactions(db, address, config);
            }
            pool(address, config);
        }
    }
}
