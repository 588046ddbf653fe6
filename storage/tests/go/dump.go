package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"

	bolt "go.etcd.io/bbolt"
)

// longestShown is the longest value, in bytes, that a dump shows as it is.
const longestShown = 64

// dump prints one line for each bucket and each entry, depth first in key order:
//
//	bucket PATH SEQUENCE
//	entry PATH KEY VALUE
//
// PATH is the names from the top down, joined by "/". Names, keys and values are in hexadecimal; an empty value is "-",
// and one of more than 64 bytes is "#LENGTH:HASH", the hash being 64-bit FNV-1a.
func dump(s *settings, path string, to io.Writer) error {
	db, err := openForReading(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	out := bufio.NewWriterSize(to, 1<<16)
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return dumpBucket(out, hex.EncodeToString(name), b)
		})
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func dumpBucket(out io.Writer, path string, b *bolt.Bucket) error {
	if _, err := fmt.Fprintf(out, "bucket %s %d\n", path, b.Sequence()); err != nil {
		return err
	}
	return b.ForEach(func(key, value []byte) error {
		if child := b.Bucket(key); child != nil {
			return dumpBucket(out, path+"/"+hex.EncodeToString(key), child)
		}
		_, err := fmt.Fprintf(out, "entry %s %x %s\n", path, key, shown(value))
		return err
	})
}

func shown(value []byte) string {
	switch {
	case len(value) == 0:
		return "-"
	case len(value) <= longestShown:
		return hex.EncodeToString(value)
	}
	hash := fnv.New64a()
	hash.Write(value)
	return fmt.Sprintf("#%d:%016x", len(value), hash.Sum64())
}
