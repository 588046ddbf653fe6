package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	bolt "go.etcd.io/bbolt"
)

// kinds are the files that make can write; each is a run of transactions.
var kinds = map[string][]func(*bolt.Tx) error{
	"inline":       {inlineBuckets},
	"nested":       {nestedBuckets},
	"overflow":     {overflowValues},
	"empty-values": {emptyValues},
	"sequences":    {sequences},
	"mixed":        {inlineBuckets, nestedBuckets, overflowValues, emptyValues, sequences, randomEntries, deletions},
	"many-free":    {manyPages, freeMostPages},
}

func makeFile(s *settings, kind, path string) error {
	steps, known := kinds[kind]
	if !known {
		return fmt.Errorf("no such kind of file: %s", kind)
	}
	db, err := openForWriting(s, path)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := db.Update(step); err != nil {
			db.Close()
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return db.Close()
}

// inlineBuckets makes buckets small enough to live in their parent's page, at the top and nested, among them empty ones.
func inlineBuckets(tx *bolt.Tx) error {
	outer, err := tx.CreateBucket([]byte("inline"))
	if err != nil {
		return err
	}
	for i := range 20 {
		inner, err := outer.CreateBucket(fmt.Appendf(nil, "small %02d", i))
		if err != nil {
			return err
		}
		for j := range i % 5 {
			if err := inner.Put(fmt.Appendf(nil, "key %d", j), bytes.Repeat([]byte{byte(i)}, i)); err != nil {
				return err
			}
		}
	}
	_, err = tx.CreateBucket([]byte("empty"))
	return err
}

// nestedBuckets makes a chain of twenty buckets, one in the other, with entries before and after each.
func nestedBuckets(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucket([]byte("nested"))
	for depth := 0; err == nil && depth < 20; depth++ {
		for i := range 10 {
			key := fmt.Appendf(nil, "%c key %d", "am"[i%2], i)
			if err := bucket.Put(key, fmt.Appendf(nil, "depth %d", depth)); err != nil {
				return err
			}
		}
		if err := bucket.SetSequence(uint64(depth)); err != nil {
			return err
		}
		bucket, err = bucket.CreateBucket(fmt.Appendf(nil, "level %d", depth))
	}
	return err
}

// overflowValues makes values around every size at which a page may run over, values of 1 MiB, and the longest key.
func overflowValues(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucket([]byte("overflow"))
	if err != nil {
		return err
	}
	for shift := 10; shift <= 17; shift++ {
		for off := -40; off <= 8; off += 8 {
			size := 1<<shift + off
			if err := bucket.Put(fmt.Appendf(nil, "size %07d", size), pattern(size)); err != nil {
				return err
			}
		}
	}
	for i := range 4 {
		if err := bucket.Put(fmt.Appendf(nil, "large %d", i), pattern(1<<20+i)); err != nil {
			return err
		}
	}
	return bucket.Put(bytes.Repeat([]byte("k"), bolt.MaxKeySize), pattern(100))
}

// emptyValues makes entries that are nothing but a key.
func emptyValues(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucket([]byte("empty values"))
	if err != nil {
		return err
	}
	for i := range 2000 {
		if err := bucket.Put(binary.BigEndian.AppendUint32(nil, uint32(i)), nil); err != nil {
			return err
		}
	}
	return nil
}

// sequences makes buckets with sequences of every size, inline and with pages of their own.
func sequences(tx *bolt.Tx) error {
	for i, sequence := range []uint64{0, 1, math.MaxUint32, math.MaxInt64, math.MaxUint64} {
		bucket, err := tx.CreateBucket(fmt.Appendf(nil, "sequence %d", i))
		if err != nil {
			return err
		}
		if err := bucket.SetSequence(sequence); err != nil {
			return err
		}
		for j := range i * 1000 {
			if err := bucket.Put(fmt.Appendf(nil, "key %06d", j), []byte("value")); err != nil {
				return err
			}
		}
	}
	return nil
}

// randomEntries makes a bucket with random keys and values of random length.
func randomEntries(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucket([]byte("random"))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		key := binary.BigEndian.AppendUint64(nil, random.Uint64())
		if err := bucket.Put(key[:1+random.IntN(8)], pattern(random.IntN(200))); err != nil {
			return err
		}
	}
	return nil
}

// deletions takes away about two entries of three, and some of the nested buckets.
func deletions(tx *bolt.Tx) error {
	bucket := tx.Bucket([]byte("random"))
	var doomed [][]byte
	at := 0
	err := bucket.ForEach(func(key, _ []byte) error {
		if at++; at%3 != 0 {
			doomed = append(doomed, bytes.Clone(key))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range doomed {
		if err := bucket.Delete(key); err != nil {
			return err
		}
	}
	for i := range 5 {
		if err := tx.Bucket([]byte("inline")).DeleteBucket(fmt.Appendf(nil, "small %02d", i*3)); err != nil {
			return err
		}
	}
	return nil
}

// manyPages makes so many pages that, freed, they do not fit the 16-bit count of a freelist page.
func manyPages(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucket([]byte("many"))
	if err != nil {
		return err
	}
	value := pattern(10*tx.DB().Info().PageSize - 100)
	for i := range 7500 {
		if err := bucket.Put(binary.BigEndian.AppendUint32(nil, uint32(i)), value); err != nil {
			return err
		}
	}
	return nil
}

// freeMostPages keeps every hundredth of those entries, so that the free pages are many runs, not one.
func freeMostPages(tx *bolt.Tx) error {
	bucket := tx.Bucket([]byte("many"))
	for i := range 7500 {
		if i%100 == 0 {
			continue
		}
		if err := bucket.Delete(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
			return err
		}
	}
	return nil
}

// pattern is size bytes that differ from place to place.
func pattern(size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i*7 + i>>8)
	}
	return out
}
