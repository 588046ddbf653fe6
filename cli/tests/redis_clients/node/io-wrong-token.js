// What ioredis hears of a wrong token: `io-wrong-token.js HOST PORT`. Ends with 1 at the first surprise, and says what it was.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Redis } from 'ioredis';

const [host, port] = process.argv.slice(2);
const db = new Redis({ host, port: Number(port), password: 'wrong', maxRetriesPerRequest: 1 });
const asked = db.get('k').then(
  () => assert.fail('a stranger was answered'),
  (error) => error,
);
const [error] = await once(db, 'error').catch((error) => [error]);
assert.match(error.message, /^WRONGPASS /);
db.disconnect();
await asked;
