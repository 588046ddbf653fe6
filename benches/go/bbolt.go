package main

import (
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// compactBytes is what compaction writes in a transaction, as bbolt's command does.
const compactBytes = 65536

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
	case "not-stored-map":
		options.NoFreelistSync, options.FreelistType = true, bolt.FreelistMapType
	default:
		return nil, fmt.Errorf("bbolt has no freelist %q", freelist)
	}
	db, err := bolt.Open(filepath.Join(folder, "bbolt.db"), 0o600, &options)
	if err != nil {
		return nil, err
	}
	missing := false
	if err := db.View(func(tx *bolt.Tx) error {
		missing = tx.Bucket(bucketName) == nil
		return nil
	}); err != nil || !missing {
		return bbolt{db}, err
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
		bucket := tx.Bucket(bucketName)
		cursor := bucket.Cursor()
		for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
			seen(key, value)
			if value != nil {
				continue
			}
			if err := bucket.Bucket(key).ForEach(func(key, value []byte) error {
				seen(key, value)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e bbolt) chore(chore, target string) error {
	switch chore {
	case "check":
		return e.db.View(func(tx *bolt.Tx) error {
			for problem := range tx.Check() {
				return problem
			}
			return nil
		})
	case "backup":
		return e.backup(target)
	case "compact":
		return e.compact(target)
	}
	return fmt.Errorf("no chore %q", chore)
}

// backup copies a snapshot and syncs it, which bbolt leaves to its caller.
func (e bbolt) backup(target string) error {
	if err := e.db.View(func(tx *bolt.Tx) error { return tx.CopyFile(target, 0o600) }); err != nil {
		return err
	}
	file, err := os.Open(target)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

func (e bbolt) compact(target string) error {
	options := *bolt.DefaultOptions
	options.NoSync = true
	db, err := bolt.Open(target, 0o600, &options)
	if err != nil {
		return err
	}
	if err := bolt.Compact(db, e.db, compactBytes); err != nil {
		return err
	}
	if err := db.Sync(); err != nil {
		return err
	}
	return db.Close()
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

func (e bbolt) close() error { return e.db.Close() }

func (e bbolt) sync() error { return e.db.Sync() }

func (e bbolt) usedBytes() (uint64, error) {
	stats := e.db.Stats()
	pageSize := uint64(e.db.Info().PageSize)
	var size uint64
	err := e.db.View(func(tx *bolt.Tx) error {
		size = uint64(tx.Size())
		return nil
	})
	return size - uint64(stats.FreePageN+stats.PendingPageN)*pageSize, err
}
