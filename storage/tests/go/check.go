package main

import (
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// check prints each problem that bbolt's own check finds, one a line.
func check(s *settings, path string, out io.Writer) error {
	db, err := openForReading(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		found := false
		for problem := range tx.Check() {
			found = true
			fmt.Fprintln(out, problem)
		}
		if found {
			return errProblems
		}
		return nil
	})
}
