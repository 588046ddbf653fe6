// A boltkv server as ioredis sees it: `io.js HOST PORT`. Ends with 1 at the first surprise, and says what it was.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, ReplyError } from 'ioredis';

const [host, port] = process.argv.slice(2);
const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const large = Buffer.alloc(5 << 20, bytes);

const connect = () => new Redis({ host, port: Number(port), db: 3, connectionName: 'judge', maxRetriesPerRequest: 1 });

async function session(db) {
  assert.equal(await db.ping(), 'PONG');
  assert.equal(await db.client('GETNAME'), 'judge');
  assert.match(await db.client('INFO'), / db=3 .* lib-name=ioredis/);
  assert.match(await db.info(), /redis_version:/);
}

async function values(db) {
  assert.equal(await db.set('s', '1'), 'OK');
  assert.equal(await db.set('s', '2', 'NX'), null);
  assert.equal(await db.set('none', '2', 'XX'), null);
  assert.equal(await db.set('s', '3', 'EX', 100, 'GET'), '1');
  assert.equal(await db.set('s', '4', 'KEEPTTL'), 'OK');
  assert.ok((await db.ttl('s')) > 90);
  assert.equal(await db.pexpire('s', 20), 1);
  for (let tries = 0; tries < 3000 && (await db.exists('s')); tries++) await sleep(10);
  assert.equal(await db.get('s'), null);
  assert.equal(await db.mset({ m1: 'a', m2: 'ü' }), 'OK');
  assert.deepEqual(await db.mget('m1', 'none', 'm2'), ['a', null, 'ü']);
  assert.equal(await db.incr('n'), 1);
  assert.equal(await db.incrby('n', 41), 42);
  assert.equal(await db.incrbyfloat('n', 0.5), '42.5');
  assert.equal(await db.hset('h', { a: 1, b: 2 }), 2);
  assert.deepEqual(await db.hgetall('h'), { a: '1', b: '2' });
  assert.deepEqual(await db.hmget('h', 'a', 'none'), ['1', null]);
  assert.equal(await db.hincrby('h', 'a', 4), 5);
  assert.equal(await db.hdel('h', 'a', 'b'), 2);
  assert.equal(await db.exists('h'), 0);
  await db.set(bytes, bytes);
  assert.ok(bytes.equals(await db.getBuffer(bytes)));
  await db.set('large', large);
  assert.ok(large.equals(await db.getBuffer('large')));
}

async function refusals(db) {
  await db.set('text', 'text');
  await db.hset('hash', 'f', 'text');
  const refused = (call, message) =>
    assert.rejects(call, (error) => error instanceof ReplyError && message.test(error.message));
  await refused(db.get('hash'), /^WRONGTYPE Operation/);
  await refused(db.incr('text'), /^ERR value is not an integer/);
  await refused(db.call('NONSENSE'), /^ERR unknown command/);
}

async function iterators(db) {
  const pipeline = db.pipeline();
  const wanted = [];
  for (let number = 0; number < 1000; number++) {
    wanted.push(`key:${String(number).padStart(4, '0')}`);
    pipeline.set(wanted[number], number).hset('fields', wanted[number], number);
  }
  const answers = await pipeline.exec();
  assert.ok(answers.length === 2000 && answers.every(([error]) => error === null));
  const found = new Set();
  for await (const some of db.scanStream({ match: 'key:*', count: 100 })) some.forEach((key) => found.add(key));
  assert.deepEqual([...found].sort(), wanted);
  let fields = 0;
  for await (const some of db.hscanStream('fields', { count: 100 })) fields += some.length / 2;
  assert.equal(fields, 1000);
}

async function transactions(db) {
  const answers = await db.multi().set('text', 'more').hget('text', 'f').get('text').exec();
  assert.ok(answers[1][0] instanceof ReplyError && answers[1][0].message.startsWith('WRONGTYPE'));
  assert.equal(answers[2][1], 'more');
  await db.set('counter', 0);
  // A connection of its own for each: what is watched is the connection's.
  const count = async () => {
    const own = connect();
    for (let done = 0, tries = 0; done < 25; tries++) {
      assert.ok(tries < 10_000);
      await own.watch('counter');
      const next = Number(await own.get('counter')) + 1;
      if ((await own.multi().set('counter', next).exec()) !== null) done++;
    }
    await own.quit();
  };
  await Promise.all([count(), count(), count(), count()]);
  assert.equal(await db.get('counter'), '100');
}

const db = connect();
await db.flushdb();
await session(db);
await values(db);
await refusals(db);
await iterators(db);
await transactions(db);
assert.equal(await db.quit(), 'OK');
