// A boltkv server as node-redis sees it: `node.js HOST PORT`. Ends with 1 at the first surprise, and says what it was.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, createClientPool, ErrorReply, RESP_TYPES, WatchError } from 'redis';

const [host, port] = process.argv.slice(2);
const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const large = Buffer.alloc(5 << 20, bytes);

const socket = { host, port: Number(port), reconnectStrategy: false };
const options = (RESP) => ({ socket, database: 3, name: 'judge', RESP });
const pool = (RESP) => createClientPool(options(RESP), { minimum: 1, maximum: 5, acquireTimeout: 60_000 });

async function session(db, protocol) {
  assert.equal(await db.ping(), 'PONG');
  assert.equal(await db.clientGetName(), 'judge');
  const about = await db.clientInfo();
  assert.equal(about.db, 3);
  assert.equal(about.resp, protocol);
  assert.match(about.libName, /node-redis/);
  assert.ok((await db.commandCount()) > 80);
  assert.deepEqual(await db.commandGetKeys(['MSET', 'a', '1', 'b', '2']), ['a', 'b']);
}

async function values(db) {
  assert.equal(await db.set('s', '1'), 'OK');
  assert.equal(await db.set('s', '2', { condition: 'NX' }), null);
  assert.equal(await db.set('s', '3', { GET: true, expiration: { type: 'EX', value: 100 } }), '1');
  assert.equal(await db.set('s', '4', { expiration: 'KEEPTTL' }), 'OK');
  assert.ok((await db.ttl('s')) > 90);
  assert.ok(await db.pExpire('s', 20));
  for (let tries = 0; tries < 3000 && (await db.exists('s')); tries++) await sleep(10);
  assert.equal(await db.get('s'), null);
  await db.mSet({ m1: 'a', m2: 'ü' });
  assert.deepEqual(await db.mGet(['m1', 'none', 'm2']), ['a', null, 'ü']);
  assert.equal(await db.incr('n'), 1);
  assert.equal(await db.incrBy('n', 41), 42);
  assert.equal(Number(await db.incrByFloat('n', 0.5)), 42.5);
  assert.equal(await db.hSet('h', { a: '1', b: '2' }), 2);
  assert.deepEqual({ ...(await db.hGetAll('h')) }, { a: '1', b: '2' });
  assert.deepEqual(await db.hmGet('h', ['a', 'none']), ['1', null]);
  assert.equal(await db.hIncrBy('h', 'a', 4), 5);
  assert.equal(await db.hDel('h', ['a', 'b']), 2);
  assert.equal(await db.exists('h'), 0);
  const raw = db.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  await db.set(bytes, bytes);
  assert.ok(bytes.equals(await raw.get(bytes)));
  await db.set('large', large);
  assert.ok(large.equals(await raw.get('large')));
}

async function refusals(db) {
  await db.set('text', 'text');
  await db.hSet('hash', 'f', 'text');
  const refused = (call, message) =>
    assert.rejects(call, (error) => error instanceof ErrorReply && message.test(error.message));
  await refused(db.get('hash'), /^WRONGTYPE Operation/);
  await refused(db.incr('text'), /^ERR value is not an integer/);
  await refused(db.sendCommand(['NONSENSE']), /^ERR unknown command/);
  const commands = db.multi().set('text', 'more').hGet('text', 'f').get('text');
  const answers = await commands.exec().catch((error) => error.replies);
  assert.ok(answers[1] instanceof ErrorReply);
  assert.equal(answers[2], 'more');
}

async function iterators(db) {
  const wanted = Array.from({ length: 1000 }, (_, number) => `key:${String(number).padStart(4, '0')}`);
  // What is asked for in one tick goes as one pipeline.
  await Promise.all(wanted.flatMap((key) => [db.set(key, key), db.hSet('fields', key, key)]));
  const found = new Set();
  for await (const some of db.scanIterator({ MATCH: 'key:*', COUNT: 100 })) some.forEach((key) => found.add(key));
  assert.deepEqual([...found].sort(), wanted);
  let fields = 0;
  for await (const some of db.hScanIterator('fields', { COUNT: 100 })) fields += some.length;
  assert.equal(fields, 1000);
}

async function transactions(clients) {
  await clients.set('counter', '0');
  const count = async () => {
    for (let done = 0, tries = 0; done < 25; tries++) {
      assert.ok(tries < 10_000);
      await clients.execute(async (own) => {
        await own.watch('counter');
        const next = Number(await own.get('counter')) + 1;
        try {
          await own.multi().set('counter', String(next)).exec();
          done++;
        } catch (error) {
          if (!(error instanceof WatchError)) throw error;
        }
      });
    }
  };
  await Promise.all([count(), count(), count(), count()]);
  assert.equal(await clients.get('counter'), '100');
}

for (const protocol of [2, 3]) {
  const db = createClient(options(protocol));
  await db.connect();
  await db.flushDb();
  await session(db, protocol);
  await values(db);
  await refusals(db);
  await iterators(db);
  const clients = await pool(protocol).connect();
  await transactions(clients);
  await clients.close();
  await db.close();
}
