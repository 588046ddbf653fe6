package main

import (
	"fmt"
	"io"
	"math/rand"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// churn writes to a file as fast as it can until its input ends: first it says so. Each transaction puts its number
// under every key of the bucket "marks" and into "deep"/"inner", changes some keys of "churn", whose values begin with
// their key, and puts how many keys that has beside its number. Now and then it rests, so that who reads all of it gets
// a chance.
func churn(s *settings, path string, in io.Reader, out io.Writer) error {
	db, err := openForWriting(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	ended := make(chan error, 1)
	keys := map[string]bool{}
	for n := 0; ; n++ {
		if err := db.Update(func(tx *bolt.Tx) error { return churnOnce(tx, n, keys) }); err != nil {
			return err
		}
		if n == 0 {
			fmt.Fprintln(out, "writing")
			go func() {
				_, err := io.Copy(io.Discard, in)
				ended <- err
			}()
		}
		if n%64 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		select {
		case err := <-ended:
			return err
		default:
		}
	}
}

func churnOnce(tx *bolt.Tx, n int, keys map[string]bool) error {
	marks, err := tx.CreateBucketIfNotExists([]byte("marks"))
	if err != nil {
		return err
	}
	deep, err := tx.CreateBucketIfNotExists([]byte("deep"))
	if err != nil {
		return err
	}
	inner, err := deep.CreateBucketIfNotExists([]byte("inner"))
	if err != nil {
		return err
	}
	changing, err := tx.CreateBucketIfNotExists([]byte("churn"))
	if err != nil {
		return err
	}
	number := []byte(strconv.Itoa(n))
	for i := 0; i < 30; i++ {
		key := fmt.Sprintf("c%04d", rand.Intn(2000))
		if rand.Intn(2) == 0 {
			delete(keys, key)
			err = changing.Delete([]byte(key))
		} else {
			keys[key] = true
			err = changing.Put([]byte(key), []byte(key+strings.Repeat("v", rand.Intn(60)*rand.Intn(60))))
		}
		if err != nil {
			return err
		}
	}
	for i := 0; i < 10; i++ {
		if err := marks.Put([]byte(fmt.Sprintf("m%d", i)), number); err != nil {
			return err
		}
	}
	if err := marks.Put([]byte("count"), []byte(strconv.Itoa(len(keys)))); err != nil {
		return err
	}
	return inner.Put([]byte("mark"), number)
}
