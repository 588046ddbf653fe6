package main

import (
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// lock opens the file, says so, and keeps it open until its input ends.
func lock(s *settings, path string, in io.Reader, out io.Writer) error {
	open := openForWriting
	if s.readOnly {
		open = openForReading
	}
	var db *bolt.DB
	db, err := open(s, path)
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Fprintln(out, "locked")
	_, err = io.Copy(io.Discard, in)
	return err
}
