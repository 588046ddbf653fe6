package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// walk steps through one bucket with one cursor and prints a line for each step: the key in hexadecimal and the value's
// length, or "bucket"; "nothing" where the step leads nowhere.
//
// The bucket's path is the names in hexadecimal, joined by "/"; a step is first, last, next, prev or seek:HEX.
func walk(s *settings, path, bucket string, steps []string, out io.Writer) error {
	db, err := openForReading(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		b, err := bucketAt(tx, bucket)
		if err != nil {
			return err
		}
		c := b.Cursor()
		for _, step := range steps {
			key, value, err := take(c, step)
			if err != nil {
				return err
			}
			switch {
			case key == nil:
				fmt.Fprintln(out, "nothing")
			case b.Bucket(key) != nil:
				fmt.Fprintf(out, "%x bucket\n", key)
			default:
				fmt.Fprintf(out, "%x %d\n", key, len(value))
			}
		}
		return nil
	})
}

func take(c *bolt.Cursor, step string) (key, value []byte, err error) {
	switch step {
	case "first":
		key, value = c.First()
	case "last":
		key, value = c.Last()
	case "next":
		key, value = c.Next()
	case "prev":
		key, value = c.Prev()
	default:
		sought, found := strings.CutPrefix(step, "seek:")
		if !found {
			return nil, nil, fmt.Errorf("no such step: %q", step)
		}
		var to []byte
		to, err = hex.DecodeString(sought)
		key, value = c.Seek(to)
	}
	return key, value, err
}
