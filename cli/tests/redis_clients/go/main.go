// A boltkv server as go-redis sees it: `HOST:PORT`. Ends with 1 at the first surprise, and says what it was.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func fail(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	fmt.Fprintln(os.Stderr, text)
	os.Exit(1)
}

// What a command came to is this, and no error.
func same[T any](what string, wanted T, command interface{ Result() (T, error) }) {
	got, err := command.Result()
	if err != nil {
		fail("%s: %v", what, err)
	}
	equal(what, got, wanted)
}

func equal(what string, got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		fail("%s: %#v instead of %#v", what, got, wanted)
	}
}

// A command found nothing.
func nothing(what string, command redis.Cmder) {
	if !errors.Is(command.Err(), redis.Nil) {
		fail("%s: %v instead of nothing", what, command.Err())
	}
}

// A command is refused by the server, in these words.
func refused(what, words string, command redis.Cmder) {
	var byServer redis.Error
	if !errors.As(command.Err(), &byServer) || !strings.HasPrefix(byServer.Error(), words) {
		fail("%s: refused with %v", what, command.Err())
	}
}

func session(db *redis.Client, protocol int) {
	same("ping", "PONG", db.Ping(ctx))
	same("echo", "a\r\nb", db.Echo(ctx, "a\r\nb"))
	same("name", "judge", db.ClientGetName(ctx))
	about, err := db.ClientInfo(ctx).Result()
	if err != nil {
		fail("client info: %v", err)
	}
	equal("database", about.DB, 3)
	equal("protocol", about.Resp, protocol)
	equal("library", strings.HasPrefix(about.LibName, "go-redis"), true)
	commands, err := db.Command(ctx).Result()
	if err != nil {
		fail("command: %v", err)
	}
	equal("arity of get", commands["get"].Arity, int8(2))
	equal("get only reads", commands["get"].ReadOnly, true)
	same("keys of a command", []string{"a", "b"}, db.CommandGetKeys(ctx, "MSET", "a", 1, "b", 2))
}

func values(db *redis.Client) {
	same("set", "OK", db.Set(ctx, "s", "1", 0))
	same("set nx", false, db.SetNX(ctx, "s", "2", 0))
	same("set xx", false, db.SetXX(ctx, "none", "2", 0))
	same("set get", "1", db.SetArgs(ctx, "s", "3", redis.SetArgs{Get: true, TTL: 100 * time.Second}))
	same("set keepttl", "OK", db.Set(ctx, "s", "4", redis.KeepTTL))
	if left := db.TTL(ctx, "s").Val(); left < 90*time.Second || left > 100*time.Second {
		fail("ttl: %v", left)
	}
	same("getex", "4", db.GetEx(ctx, "s", 10*time.Millisecond))
	for range 3000 {
		if db.Exists(ctx, "s").Val() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	nothing("past its time", db.Get(ctx, "s"))
	same("mset", "OK", db.MSet(ctx, "m1", "a", "m2", "b"))
	same("mget", []any{"a", nil, "b"}, db.MGet(ctx, "m1", "none", "m2"))
	same("incr", int64(1), db.Incr(ctx, "n"))
	same("incrby", int64(42), db.IncrBy(ctx, "n", 41))
	same("decr", int64(41), db.Decr(ctx, "n"))
	same("incrbyfloat", 41.5, db.IncrByFloat(ctx, "n", 0.5))
	same("expire", true, db.Expire(ctx, "n", time.Minute))
	same("persist", true, db.Persist(ctx, "n"))
	same("hset", int64(2), db.HSet(ctx, "h", "a", "1", "b\r\n\xff", "2"))
	same("hgetall", map[string]string{"a": "1", "b\r\n\xff": "2"}, db.HGetAll(ctx, "h"))
	same("hmget", []any{"1", nil}, db.HMGet(ctx, "h", "a", "none"))
	same("hincrby", int64(5), db.HIncrBy(ctx, "h", "a", 4))
	same("hincrbyfloat", 5.25, db.HIncrByFloat(ctx, "h", "a", 0.25))
	same("hdel", int64(2), db.HDel(ctx, "h", "a", "b\r\n\xff"))
	same("an empty hash is gone", "none", db.Type(ctx, "h"))
	every := make([]byte, 256)
	for index := range every {
		every[index] = byte(index)
	}
	same("a binary key", "OK", db.Set(ctx, string(every), every, 0))
	same("a binary value", string(every), db.Get(ctx, string(every)))
	large := bytes.Repeat(every, 5*1024*4)
	same("a large value", "OK", db.Set(ctx, "large", large, 0))
	got, err := db.Get(ctx, "large").Bytes()
	if err != nil || !bytes.Equal(got, large) {
		fail("a large value: %d bytes, %v", len(got), err)
	}
	nothing("nothing", db.Get(ctx, "none"))
}

func refusals(db *redis.Client) {
	db.Set(ctx, "text", "text", 0)
	db.HSet(ctx, "hash", "f", "text")
	refused("wrong type", "WRONGTYPE Operation", db.Get(ctx, "hash"))
	refused("no number", "ERR value is not an integer", db.Incr(ctx, "text"))
	refused("no command", "ERR unknown command", db.Do(ctx, "NONSENSE"))
	refused("too few words", "ERR wrong number of arguments", db.Do(ctx, "GET"))
}

func iterators(db *redis.Client) {
	wanted := map[string]bool{}
	commands, err := db.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := range 1000 {
			name := fmt.Sprintf("key:%04d", number)
			wanted[name] = true
			pipe.Set(ctx, name, number, 0)
			pipe.HSet(ctx, "fields", name, number)
		}
		return nil
	})
	if err != nil || len(commands) != 2000 {
		fail("a pipeline: %d, %v", len(commands), err)
	}
	found := map[string]bool{}
	keys := db.Scan(ctx, 0, "key:*", 100).Iterator()
	for keys.Next(ctx) {
		found[keys.Val()] = true
	}
	equal("scan", found, wanted)
	fields, seen := db.HScan(ctx, "fields", 0, "", 100).Iterator(), 0
	for fields.Next(ctx) {
		seen++
	}
	if keys.Err() != nil || fields.Err() != nil {
		fail("iterators: %v, %v", keys.Err(), fields.Err())
	}
	equal("hscan, names and values", seen, 2000)
}

// Several at once add to a number by reading and writing it; whoever was too late tries once more.
func transactions(db *redis.Client) {
	db.Set(ctx, "counter", 0, 0)
	add := func(tx *redis.Tx) error {
		number, err := tx.Get(ctx, "counter").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "counter", number+1, 0)
			return nil
		})
		return err
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				// Somebody always gets through: this ends long before.
				for range 10_000 {
					err := db.Watch(ctx, add, "counter")
					if err == nil {
						break
					}
					if !errors.Is(err, redis.TxFailedErr) {
						fail("a transaction: %v", err)
					}
				}
			}
		})
	}
	all.Wait()
	same("what was counted", "100", db.Get(ctx, "counter"))
	commands, _ := db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "text", "more", 0)
		pipe.HGet(ctx, "text", "f")
		pipe.Get(ctx, "text")
		return nil
	})
	refused("an error within", "WRONGTYPE", commands[1])
	equal("the command behind it", commands[2].(*redis.StringCmd).Val(), "more")
}

// More goroutines than connections.
func pool(db *redis.Client) {
	var all sync.WaitGroup
	for worker := range 50 {
		all.Go(func() {
			for step := range 20 {
				name := fmt.Sprintf("pool:%d:%d", worker, step)
				same("a pool's set", "OK", db.Set(ctx, name, name, 0))
				same("a pool's get", name, db.Get(ctx, name))
			}
		})
	}
	all.Wait()
}

func main() {
	for _, protocol := range []int{2, 3} {
		db := redis.NewClient(&redis.Options{
			Addr: os.Args[1], DB: 3, Protocol: protocol, ClientName: "judge", PoolSize: 5, PoolTimeout: time.Minute,
		})
		same("flushdb", "OK", db.FlushDB(ctx))
		session(db, protocol)
		values(db)
		refusals(db)
		iterators(db)
		transactions(db)
		pool(db)
		if err := db.Close(); err != nil {
			fail("close: %v", err)
		}
	}
}
