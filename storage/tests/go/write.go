package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// copyFile writes bbolt's backup of a file.
func copyFile(s *settings, path, target string) error {
	db, err := openForReading(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error { return tx.CopyFile(target, 0o600) })
}

// compact writes a file anew; the settings are those of the new one.
func compact(s *settings, path, target string) error {
	from, err := openForReading(s, path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openForWriting(s, target)
	if err != nil {
		return err
	}
	defer to.Close()
	return bolt.Compact(to, from, s.txMaxSize)
}

// move moves a bucket from one path to another and prints "moved", or why bbolt does not.
func move(s *settings, path, from, name, to string, out io.Writer) error {
	db, err := openForWriting(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Update(func(tx *bolt.Tx) error {
		source, err := bucketAt(tx, from)
		if err != nil {
			return err
		}
		target, err := bucketAt(tx, to)
		if err != nil {
			return err
		}
		raw, err := hex.DecodeString(name)
		if err != nil {
			return err
		}
		if err := tx.MoveBucket(raw, source, target); err != nil {
			fmt.Fprintln(out, err)
			return nil
		}
		fmt.Fprintln(out, "moved")
		return nil
	})
}

// bucketAt is the bucket at a path, or nil for "-", the top.
func bucketAt(tx *bolt.Tx, path string) (*bolt.Bucket, error) {
	if path == "-" {
		return nil, nil
	}
	var bucket *bolt.Bucket
	for i, part := range strings.Split(path, "/") {
		name, err := hex.DecodeString(part)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			bucket = tx.Bucket(name)
		} else {
			bucket = bucket.Bucket(name)
		}
		if bucket == nil {
			return nil, fmt.Errorf("no bucket at %s", path)
		}
	}
	return bucket, nil
}
