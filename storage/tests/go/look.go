package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// look prints what bbolt says of how a file is built, in three parts:
//
//	stats PATH FIGURES...     of every bucket, depth first; the figures in the order of bolt.BucketStats
//	bucket DEPTH NAME KEYS    bbolt's Inspect, depth first
//	page ID TYPE COUNT OVERFLOW
//
// PATH and NAME are in hexadecimal, as in a dump. A free page has no count and no overflow: what its header says is
// left from before.
func look(s *settings, path string, to io.Writer) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: s.timeout, ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return err
	}
	defer db.Close()
	out := bufio.NewWriterSize(to, 1<<16)
	err = db.View(func(tx *bolt.Tx) error {
		err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return lookAtStats(out, hex.EncodeToString(name), b)
		})
		if err != nil {
			return err
		}
		lookAtStructure(out, 0, tx.Inspect())
		return lookAtPages(out, tx)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func lookAtStats(out io.Writer, path string, b *bolt.Bucket) error {
	s := b.Stats()
	fmt.Fprintln(out, "stats", path, s.BranchPageN, s.BranchOverflowN, s.LeafPageN, s.LeafOverflowN, s.KeyN, s.Depth,
		s.BranchAlloc, s.BranchInuse, s.LeafAlloc, s.LeafInuse, s.BucketN, s.InlineBucketN, s.InlineBucketInuse)
	return b.ForEachBucket(func(name []byte) error {
		return lookAtStats(out, path+"/"+hex.EncodeToString(name), b.Bucket(name))
	})
}

func lookAtStructure(out io.Writer, depth int, bucket bolt.BucketStructure) {
	fmt.Fprintf(out, "bucket %d %x %d\n", depth, bucket.Name, bucket.KeyN)
	for _, child := range bucket.Children {
		lookAtStructure(out, depth+1, child)
	}
}

func lookAtPages(out io.Writer, tx *bolt.Tx) error {
	for id := 0; ; {
		page, err := tx.Page(id)
		if err != nil || page == nil {
			return err
		}
		if page.Type == "free" {
			page.Count, page.OverflowCount = 0, 0
		}
		fmt.Fprintln(out, "page", id, page.Type, page.Count, page.OverflowCount)
		id += 1 + page.OverflowCount
	}
}
