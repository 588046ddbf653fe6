package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// The field that is summed up, and the one that is changed.
const (
	summed  = "age"
	changed = "login_count"
)

var errMissing = errors.New("a record or a field is missing")

// touched is how many of count records a task does something with.
func touched(task string, count uint64) uint64 {
	switch task {
	case "read", "update":
		return count / 2
	case "read-many":
		return count / 3
	}
	return count
}

// records does a task with so many records, as src/records/store.rs.
func (e bbolt) records(layout, task string, count uint64) (witness uint64, err error) {
	n := touched(task, count)
	random := func(i uint64) int64 { return int64(splitmix(i) % count) }
	switch task {
	case "make":
		return 0, upTo(n, func(i uint64) error { return makeEntries(layout, newRecord(int64(i))) })
	case "write-each":
		return 0, e.each(n, func(b *bolt.Bucket, i uint64) error { return store(b, layout, newRecord(int64(i))) })
	case "update":
		return 0, e.each(n, func(b *bolt.Bucket, i uint64) error { return raise(b, layout, random(i)) })
	case "write-all":
		return 0, e.db.Update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket(bucketName)
			return upTo(n, func(i uint64) error { return store(bucket, layout, newRecord(int64(i))) })
		})
	case "read":
		err = upTo(n, func(i uint64) error {
			return e.db.View(func(tx *bolt.Tx) error { return see(tx.Bucket(bucketName), layout, random(i), &witness) })
		})
		return witness, err
	case "read-many":
		err = e.db.View(func(tx *bolt.Tx) error {
			bucket := tx.Bucket(bucketName)
			return upTo(n, func(i uint64) error { return see(bucket, layout, int64(count/2+i), &witness) })
		})
		return witness, err
	case "field-sum":
		err = e.db.View(func(tx *bolt.Tx) error {
			bucket := tx.Bucket(bucketName)
			return upTo(n, func(i uint64) error {
				age, err := age(bucket, layout, int64(i))
				witness += uint64(age)
				return err
			})
		})
		return witness, err
	}
	return 0, fmt.Errorf("no task %q", task)
}

func upTo(n uint64, do func(i uint64) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// each does something n times, each in its own transaction.
func (e bbolt) each(n uint64, do func(b *bolt.Bucket, i uint64) error) error {
	return upTo(n, func(i uint64) error {
		return e.db.Update(func(tx *bolt.Tx) error { return do(tx.Bucket(bucketName), i) })
	})
}

func see(b *bolt.Bucket, layout string, id int64, witness *uint64) error {
	r, err := load(b, layout, id)
	if err == nil {
		*witness += uint64(r.Age)
	}
	return err
}

func recordKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

func fieldKey(id int64, name string) []byte { return append(recordKey(id), name...) }

func store(b *bolt.Bucket, layout string, r *record) error {
	switch layout {
	case "multi-kv":
		for i := range fields {
			if err := b.Put(fieldKey(r.ID, fields[i].name), fields[i].put(r, nil)); err != nil {
				return err
			}
		}
		return nil
	case "nested":
		own, err := b.CreateBucketIfNotExists(recordKey(r.ID))
		if err != nil {
			return err
		}
		for i := range fields {
			if err := own.Put([]byte(fields[i].name), fields[i].put(r, nil)); err != nil {
				return err
			}
		}
		return nil
	}
	value, err := encode(layout, r)
	if err != nil {
		return err
	}
	return b.Put(recordKey(r.ID), value)
}

// made keeps the compiler from leaving out what nobody stores.
var made []byte

// makeEntries makes the keys and values of a record.
func makeEntries(layout string, r *record) (err error) {
	switch layout {
	case "multi-kv", "nested":
		for i := range fields {
			if layout == "multi-kv" {
				made = fieldKey(r.ID, fields[i].name)
			}
			made = fields[i].put(r, nil)
		}
		return nil
	}
	made = recordKey(r.ID)
	made, err = encode(layout, r)
	return err
}

func load(b *bolt.Bucket, layout string, id int64) (*record, error) {
	switch layout {
	case "multi-kv":
		r, prefix, cursor := new(record), recordKey(id), b.Cursor()
		for key, value := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			if _, err := takeNamed(r, string(key[len(prefix):]), value); err != nil {
				return nil, err
			}
		}
		return r, nil
	case "nested":
		own := b.Bucket(recordKey(id))
		if own == nil {
			return nil, errMissing
		}
		r := new(record)
		return r, own.ForEach(func(key, value []byte) error {
			_, err := takeNamed(r, string(key), value)
			return err
		})
	}
	value := b.Get(recordKey(id))
	if value == nil {
		return nil, errMissing
	}
	return decode(layout, value)
}

// age is one field of a record, by itself where the layout has it so.
func age(b *bolt.Bucket, layout string, id int64) (int32, error) {
	var value []byte
	switch layout {
	case "multi-kv":
		value = b.Get(fieldKey(id, summed))
	case "nested":
		if own := b.Bucket(recordKey(id)); own != nil {
			value = own.Get([]byte(summed))
		}
	default:
		r, err := load(b, layout, id)
		if err != nil {
			return 0, err
		}
		return r.Age, nil
	}
	if len(value) != 4 {
		return 0, errMissing
	}
	return int32(binary.LittleEndian.Uint32(value)), nil
}

// raise raises one field of a record by one.
func raise(b *bolt.Bucket, layout string, id int64) error {
	key := []byte(changed)
	switch layout {
	case "multi-kv":
		key = fieldKey(id, changed)
	case "nested":
		if b = b.Bucket(recordKey(id)); b == nil {
			return errMissing
		}
	default:
		r, err := load(b, layout, id)
		if err != nil {
			return err
		}
		r.LoginCount++
		return store(b, layout, r)
	}
	value := b.Get(key)
	if len(value) != 4 {
		return errMissing
	}
	return b.Put(key, binary.LittleEndian.AppendUint32(nil, binary.LittleEndian.Uint32(value)+1))
}
