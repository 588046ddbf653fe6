package main

import (
	"fmt"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

var bucketName = []byte("bench")

// bbolt is a database with its one bucket.
type bbolt struct{ db *bolt.DB }

func openBbolt(folder, freelist string, synced bool) (engine, error) {
	options := *bolt.DefaultOptions
	options.NoSync = !synced
	switch freelist {
	case "":
	case "not-stored":
		options.NoFreelistSync = true
	default:
		return nil, fmt.Errorf("bbolt has no freelist %q", freelist)
	}
	db, err := bolt.Open(filepath.Join(folder, "bbolt.db"), 0o600, &options)
	if err != nil {
		return nil, err
	}
	return bbolt{db}, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bucketName)
		return err
	})
}

func (e bbolt) put(bucket []byte, entries func(each func(key, value []byte) error) error) error {
	return e.db.Update(func(tx *bolt.Tx) error {
		target := tx.Bucket(bucketName)
		if bucket != nil {
			nested, err := target.CreateBucket(bucket)
			if err != nil {
				return err
			}
			target = nested
		}
		return entries(target.Put)
	})
}

func (e bbolt) delete(keys func(each func(key []byte) error) error) error {
	return e.db.Update(func(tx *bolt.Tx) error { return keys(tx.Bucket(bucketName).Delete) })
}

func (e bbolt) get(keys func(each func(key []byte) error) error, seen func(value []byte)) error {
	return e.db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(bucketName)
		return keys(func(key []byte) error {
			if value := bucket.Get(key); value != nil {
				seen(value)
			}
			return nil
		})
	})
}

func (e bbolt) scan(seen func(key, value []byte)) error {
	return e.db.View(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketName).Cursor()
		for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
			seen(key, value)
		}
		return nil
	})
}

func (e bbolt) clear() error {
	return e.db.Update(func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket(bucketName); err != nil {
			return err
		}
		_, err := tx.CreateBucket(bucketName)
		return err
	})
}

func (e bbolt) sync() error { return e.db.Sync() }

func (e bbolt) usedBytes() uint64 {
	stats := e.db.Stats()
	pageSize := uint64(e.db.Info().PageSize)
	var size uint64
	_ = e.db.View(func(tx *bolt.Tx) error {
		size = uint64(tx.Size())
		return nil
	})
	return size - uint64(stats.FreePageN+stats.PendingPageN)*pageSize
}
