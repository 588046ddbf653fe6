package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
)

// deepest is the most stack, in bytes, that the check may take: a page that leads to itself has it go down for ever.
const deepest = 8 << 20

// check prints each problem that bbolt's own check finds, one a line. On a badly damaged file it can also crash, or walk for
// hours and take all memory: that is what giving up is for.
func check(s *settings, path string, out io.Writer) error {
	debug.SetMaxStack(deepest)
	if s.giveUp > 0 {
		time.AfterFunc(s.giveUp, func() { os.Exit(exitGaveUp) })
	}
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
