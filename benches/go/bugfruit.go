//go:build bugfruit

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	fruit "github.com/reesporte/bugfruit"
)

// The module is not in go.mod, so that where it cannot be fetched the others are built all the same: whoever builds
// with this tag gets it first.
func init() { engines["bugfruit"] = openBugfruit }

var errNotInBugfruit = errors.New("bugfruit has neither transactions, an order, buckets nor chores")

// bugfruit is a map in memory with a file that is appended to. It does the works of its own micro-benchmark.
type bugfruit struct{ storage *fruit.Storage }

func openBugfruit(folder, freelist string, synced bool) (engine, error) {
	if freelist != "" || synced {
		return nil, errNotInBugfruit
	}
	// Zeros: neither syncs nor vacuums by itself.
	storage, err := fruit.NewStorage(filepath.Join(folder, "bugfruit.db"), 0o600, &fruit.Config{})
	return bugfruit{storage}, err
}

func (e bugfruit) put(bucket []byte, entries func(each func(key, value []byte) error) error) error {
	if bucket != nil {
		return errNotInBugfruit
	}
	// It keeps the slice that it is given, where the others copy: its own benchmark makes each anew, too.
	return entries(func(key, value []byte) error { return e.storage.Set(string(key), bytes.Clone(value)) })
}

func (e bugfruit) delete(keys func(each func(key []byte) error) error) error {
	return keys(func(key []byte) error { return e.storage.Delete(string(key)) })
}

func (e bugfruit) get(keys func(each func(key []byte) error) error, seen func(value []byte)) error {
	return keys(func(key []byte) error {
		if value, ok := e.storage.Get(string(key)); ok {
			seen(value)
		}
		return nil
	})
}

func (e bugfruit) scan(func(key, value []byte)) error { return errNoScan }

func (e bugfruit) chore(string, string) error { return errNotInBugfruit }

func (e bugfruit) records(string, string, uint64) (uint64, error) { return 0, errNotInBugfruit }

func (e bugfruit) clear() error { return errNotInBugfruit }

func (e bugfruit) close() error { return e.storage.Close() }

// sync brings to the disk what bugfruit has written: it syncs nothing itself but when it is closed.
func (e bugfruit) sync() error {
	file, err := os.Open(e.storage.Name())
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// usedBytes is the whole file: what was deleted stays in it.
func (e bugfruit) usedBytes() (uint64, error) {
	info, err := os.Stat(e.storage.Name())
	if err != nil {
		return 0, err
	}
	return uint64(info.Size()), nil
}
