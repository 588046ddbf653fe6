package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// replayer applies a trace, one step a line, to a file:
//
//	begin                     commit                   rollback
//	create PATH               (a bucket; fine if it is there)
//	drop PATH                 (a bucket and all in it)
//	put PATH KEY VALUE        delete PATH KEY          sequence PATH NUMBER
//	reopen                    (close the file and open it again)
//
// PATH is the bucket names from the top down in hexadecimal, joined by "/"; KEY and VALUE are in hexadecimal, an empty
// value is "-", and "*LENGTH:BYTE" is one byte, LENGTH times. A trace is ours to get right: any step that bbolt refuses
// ends the replay with an error.
type replayer struct {
	settings *settings
	path     string
	out      io.Writer
	db       *bolt.DB
	tx       *bolt.Tx
}

func replay(s *settings, path, tracePath string, out io.Writer) (err error) {
	trace, err := os.Open(tracePath)
	if err != nil {
		return err
	}
	defer trace.Close()
	r := &replayer{settings: s, path: path, out: out}
	if r.db, err = openForWriting(s, path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()

	lines := bufio.NewReaderSize(trace, 1<<20)
	for number := 1; ; number++ {
		line, readErr := lines.ReadString('\n')
		if readErr != nil && readErr != io.EOF {
			return readErr
		}
		if words := strings.Fields(line); len(words) > 0 {
			if err := r.step(words); err != nil {
				return fmt.Errorf("%s:%d: %s: %w", tracePath, number, words[0], err)
			}
		}
		if readErr == io.EOF {
			return nil
		}
	}
}

func (r *replayer) close() error {
	if r.tx != nil {
		return errors.Join(errors.New("the trace ends within a transaction"), r.tx.Rollback(), r.db.Close())
	}
	return r.db.Close()
}

func (r *replayer) step(words []string) (err error) {
	switch step := words[0] + " " + strconv.Itoa(len(words)-1); step {
	case "begin 0":
		r.tx, err = r.db.Begin(true)
		return err
	case "commit 0":
		err, r.tx = r.tx.Commit(), nil
		return errors.Join(err, r.printDigest())
	case "rollback 0":
		err, r.tx = r.tx.Rollback(), nil
		return err
	case "reopen 0":
		if err := r.db.Close(); err != nil {
			return err
		}
		r.db, err = openForWriting(r.settings, r.path)
		return err
	case "create 1", "drop 1":
		return r.bucketStep(words)
	case "put 3", "delete 2", "sequence 2":
		return r.entryStep(words)
	default:
		return fmt.Errorf("no such step: %s", step)
	}
}

func (r *replayer) printDigest() error {
	if !r.settings.digests {
		return nil
	}
	content, err := os.ReadFile(r.path)
	if err != nil {
		return err
	}
	hash := fnv.New64a()
	hash.Write(content)
	_, err = fmt.Fprintf(r.out, "%016x\n", hash.Sum64())
	return err
}

func (r *replayer) bucketStep(words []string) error {
	parent, name, err := r.parent(words[1])
	if err != nil {
		return err
	}
	switch {
	case words[0] == "drop" && parent == nil:
		return r.tx.DeleteBucket(name)
	case words[0] == "drop":
		return parent.DeleteBucket(name)
	case parent == nil:
		_, err = r.tx.CreateBucketIfNotExists(name)
	default:
		_, err = parent.CreateBucketIfNotExists(name)
	}
	return err
}

func (r *replayer) entryStep(words []string) error {
	bucket, err := r.bucket(words[1])
	if err != nil {
		return err
	}
	if words[0] == "sequence" {
		number, err := strconv.ParseUint(words[2], 10, 64)
		if err != nil {
			return err
		}
		return bucket.SetSequence(number)
	}
	key, err := hex.DecodeString(words[2])
	if err != nil {
		return err
	}
	if words[0] == "delete" {
		return bucket.Delete(key)
	}
	value, err := parseValue(words[3])
	if err != nil {
		return err
	}
	return bucket.Put(key, value)
}

func parseValue(word string) ([]byte, error) {
	if word == "-" {
		return []byte{}, nil
	}
	repeated, isRepeated := strings.CutPrefix(word, "*")
	if !isRepeated {
		return hex.DecodeString(word)
	}
	length, digits, _ := strings.Cut(repeated, ":")
	count, err := strconv.Atoi(length)
	if err != nil {
		return nil, err
	}
	one, err := hex.DecodeString(digits)
	return bytes.Repeat(one, count), err
}

// parent is the bucket that holds the last of the path's names, nil for the top.
func (r *replayer) parent(path string) (*bolt.Bucket, []byte, error) {
	above, last, nested := path, path, false
	if cut := strings.LastIndexByte(path, '/'); cut >= 0 {
		above, last, nested = path[:cut], path[cut+1:], true
	}
	name, err := hex.DecodeString(last)
	if err != nil || !nested {
		return nil, name, err
	}
	bucket, err := r.bucket(above)
	return bucket, name, err
}

// bucket opens the bucket at a path; the fill percent goes to every bucket on the way, for it lasts only as long as the
// transaction.
func (r *replayer) bucket(path string) (*bolt.Bucket, error) {
	var bucket *bolt.Bucket
	for word := range strings.SplitSeq(path, "/") {
		name, err := hex.DecodeString(word)
		if err != nil {
			return nil, err
		}
		if bucket == nil {
			bucket = r.tx.Bucket(name)
		} else {
			bucket = bucket.Bucket(name)
		}
		if bucket == nil {
			return nil, fmt.Errorf("no bucket %s in %s", word, path)
		}
		bucket.FillPercent = r.settings.fill
	}
	return bucket, nil
}
