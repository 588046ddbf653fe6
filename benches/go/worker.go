package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// An engine is what a measurement asks for, as the trait of src/engines/mod.rs. Each call is one transaction.
type engine interface {
	put(bucket []byte, entries func(each func(key, value []byte) error) error) error
	delete(keys func(each func(key []byte) error) error) error
	get(keys func(each func(key []byte) error) error, seen func(value []byte)) error
	scan(seen func(key, value []byte)) error
	chore(chore, target string) error
	records(layout, task string, count uint64) (witness uint64, err error)
	clear() error
	sync() error
	close() error
	usedBytes() (uint64, error)
}

// errNoScan is what an engine says that cannot list what it holds.
var errNoScan = errors.New("cannot list what it holds")

// A job is one work on one engine.
type job struct {
	engine engine
	open   func() (engine, error)
	folder string
	work   work
	values values
}

type done struct {
	operations uint64
	time       time.Duration
	witness    uint64
}

func (j *job) step(s stage) (done, error) {
	switch s.Step {
	case "put":
		return timed(s.Picks.Count, func() (uint64, error) { return 0, j.put(s) })
	case "delete":
		return timed(s.Picks.Count, func() (uint64, error) { return 0, j.delete(s) })
	case "get":
		if s.Threads == 1 {
			return timed(s.Picks.Count, func() (uint64, error) { return j.get(s) })
		}
		return j.getOnThreads(s)
	case "scan":
		return j.scan(s.Times)
	case "open":
		return j.reopen()
	case "chore":
		return j.chore(s.Chore)
	case "records":
		return timed(touched(s.Task, s.Count), func() (uint64, error) {
			return j.engine.records(s.Layout, s.Task, s.Count)
		})
	case "clear":
		return timed(1, func() (uint64, error) { return 0, j.engine.clear() })
	case "sync":
		return timed(0, func() (uint64, error) { return 0, j.engine.sync() })
	}
	return done{}, fmt.Errorf("no step %q", s.Step)
}

// reopen closes the database and opens it again; the opening is timed.
func (j *job) reopen() (done, error) {
	if err := j.engine.close(); err != nil {
		return done{}, err
	}
	return timed(1, func() (_ uint64, err error) {
		j.engine, err = j.open()
		return 0, err
	})
}

func (j *job) chore(chore string) (done, error) {
	target := filepath.Join(j.folder, "target")
	d, err := timed(1, func() (uint64, error) { return 0, j.engine.chore(chore, target) })
	if err != nil {
		return d, err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	folder, err := os.Open(j.folder)
	if err != nil {
		return d, err
	}
	defer folder.Close()
	// Or the next sync pays for it, whoever's that is.
	return d, folder.Sync()
}

func (j *job) maker() *maker { return &maker{kind: j.work.Keys, values: j.values} }

// batches calls do with the start and the end of each batch of a stage's picks.
func batches(s stage, do func(number, from, to uint64) error) error {
	for number, from := uint64(0), uint64(0); from < s.Picks.Count; number, from = number+1, from+s.Batch {
		if err := do(number, from, min(from+s.Batch, s.Picks.Count)); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) put(s stage) error {
	m := j.maker()
	return batches(s, func(number, from, to uint64) error {
		var bucket []byte
		if s.Nested {
			bucket = append(bucket, m.keyOf(number)...)
		}
		return j.engine.put(bucket, func(each func(key, value []byte) error) error {
			for at := from; at < to; at++ {
				n := s.Picks.number(at)
				// Values are numbered from elsewhere in each stage, so that what is put again is another value.
				if err := each(m.keyOf(n), m.valueOf(n+s.Picks.From)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// keys gives the keys of a batch, one after the other.
func keys(m *maker, p picks, from, to uint64) func(each func(key []byte) error) error {
	return func(each func(key []byte) error) error {
		for at := from; at < to; at++ {
			if err := each(m.keyOf(p.number(at))); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j *job) delete(s stage) error {
	m := j.maker()
	return batches(s, func(_, from, to uint64) error { return j.engine.delete(keys(m, s.Picks, from, to)) })
}

func (j *job) get(s stage) (witness uint64, err error) {
	m := j.maker()
	err = batches(s, func(_, from, to uint64) error {
		return j.engine.get(keys(m, s.Picks, from, to), func(value []byte) { witness += 1 + first(value) })
	})
	return witness, err
}

func (j *job) getOnThreads(s stage) (done, error) {
	var readers sync.WaitGroup
	witnesses, errs := make([]uint64, s.Threads), make([]error, s.Threads)
	start := make(chan struct{})
	for thread := range s.Threads {
		own := s
		own.Picks.From += thread * s.Picks.Count
		readers.Go(func() {
			<-start
			witnesses[thread], errs[thread] = j.get(own)
		})
	}
	return timed(s.Threads*s.Picks.Count, func() (witness uint64, err error) {
		close(start)
		readers.Wait()
		for thread := range s.Threads {
			witness += witnesses[thread]
			if errs[thread] != nil {
				err = errs[thread]
			}
		}
		return witness, err
	})
}

func (j *job) scan(times uint64) (done, error) {
	var entries uint64
	d, err := timed(0, func() (witness uint64, err error) {
		for range times {
			err := j.engine.scan(func(key, value []byte) {
				entries++
				witness = sum(sum(witness, key), value)
			})
			if err != nil {
				return 0, err
			}
		}
		return witness, nil
	})
	d.operations = entries
	return d, err
}

// contents is everything that the database holds, of records only their number; nil where it cannot be listed.
func (j *job) contents() (*contents, error) {
	encoded := slices.ContainsFunc(j.work.Stages, func(s stage) bool { return s.Step == "records" })
	hash := fnv.New64a()
	var entries uint64
	err := j.engine.scan(func(key, value []byte) {
		entries++
		if encoded {
			return
		}
		hash.Write(key)
		hash.Write(value)
	})
	if errors.Is(err, errNoScan) {
		return nil, nil
	}
	return &contents{entries, hash.Sum64()}, err
}

// sum adds up all bytes, eight at a time, as src/worker.rs does.
func sum(sum uint64, bytes []byte) uint64 {
	for ; len(bytes) >= 8; bytes = bytes[8:] {
		sum += binary.LittleEndian.Uint64(bytes)
	}
	for _, b := range bytes {
		sum += uint64(b)
	}
	return sum
}

// folderBytes is how many bytes all files in a folder have.
func folderBytes(folder string) (bytes uint64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += uint64(info.Size())
		}
		return err
	})
	return bytes, err
}

// first is the first byte, or 0.
func first(bytes []byte) uint64 {
	if len(bytes) == 0 {
		return 0
	}
	return uint64(bytes[0])
}

func timed(operations uint64, run func() (uint64, error)) (done, error) {
	start := time.Now()
	witness, err := run()
	return done{operations, time.Since(start), witness}, err
}
