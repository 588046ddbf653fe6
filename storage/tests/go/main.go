// Command bboltpeer is Go's bbolt at the other end of a file: it makes, dumps, checks, changes and locks database
// files for the interoperability tests. It must never know anything of the format itself: bbolt does the reading
// and writing here, so that agreement with this program is agreement with bbolt.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const usage = `usage: bboltpeer COMMAND [flags] ARGUMENTS

  make  [flags] KIND FILE        write a new file of one kind: inline, nested, overflow, empty-values, sequences,
                                 mixed, many-free
  trace [flags] FILE TRACEFILE   replay a recorded trace on a file, made when it is missing
  dump  [flags] FILE             print everything in the file, depth first in key order
  walk  [flags] FILE PATH STEP.. step through one bucket and print what each step answers
  check [flags] FILE             print what bbolt's consistency check finds
  look  [flags] FILE             print figures of every bucket, the structure of buckets, and the pages
  copy  [flags] FILE NEWFILE     write a backup
  compact [flags] FILE NEWFILE   write the file anew, without free pages
  move  [flags] FILE FROM NAME TO  move a bucket between two paths ("-": the top), and print "moved" or why not
  random-fill-order              print the order of keys of a test of bbolt's, one line for each commit
  churn [flags] FILE             write as fast as it can: prints "writing", ends when standard input ends
  lock  [flags] FILE             hold the file's lock, exclusive or with --read-only shared: prints "locked", lets go
                                 when standard input ends

flags, where they make sense:
  --page-size N      page size of a new file (default: the operating system's)
  --no-freelist      do not store the freelist
  --freelist KIND    array (default) or hashmap
  --fill F           trace: fill percent of every bucket (default 0.5)
  --digests          trace: print the 64-bit FNV-1a hash of the whole file after each commit
  --tx-max-size N    compact: bytes of keys and values in a transaction (default 0: all in one)
  --timeout D        how long to wait for the file's lock (default 10s)
  --read-only        lock: take the shared lock
  --give-up D        check: end without an answer after that long (default: never)

exit status: 0 done, 1 the check found problems, 2 usage, 3 the lock was not to be had in time, 4 any other error,
5 given up
`

const (
	exitDone = iota
	exitProblems
	exitUsage
	exitLockTimeout
	exitFailed
	exitGaveUp
)

var (
	errUsage    = errors.New("usage")
	errProblems = errors.New("the check found problems")
)

// settings is what the flags say.
type settings struct {
	pageSize   int
	noFreelist bool
	freelist   string
	fill       float64
	digests    bool
	txMaxSize  int64
	timeout    time.Duration
	readOnly   bool
	giveUp     time.Duration
}

func main() {
	err := run(os.Args[1:])
	switch {
	case err == nil:
		os.Exit(exitDone)
	case errors.Is(err, errProblems):
		os.Exit(exitProblems)
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	fmt.Fprintln(os.Stderr, "bboltpeer:", err)
	if errors.Is(err, berrors.ErrTimeout) {
		os.Exit(exitLockTimeout)
	}
	os.Exit(exitFailed)
}

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags, s := newFlags(args[0])
	if err := flags.Parse(args[1:]); err != nil {
		return errUsage
	}
	command, rest := args[0], flags.Args()
	switch {
	case command == "make" && len(rest) == 2:
		return makeFile(s, rest[0], rest[1])
	case command == "trace" && len(rest) == 2:
		return replay(s, rest[0], rest[1], os.Stdout)
	case command == "dump" && len(rest) == 1:
		return dump(s, rest[0], os.Stdout)
	case command == "walk" && len(rest) >= 2:
		return walk(s, rest[0], rest[1], rest[2:], os.Stdout)
	case command == "check" && len(rest) == 1:
		return check(s, rest[0], os.Stdout)
	case command == "look" && len(rest) == 1:
		return look(s, rest[0], os.Stdout)
	case command == "copy" && len(rest) == 2:
		return copyFile(s, rest[0], rest[1])
	case command == "compact" && len(rest) == 2:
		return compact(s, rest[0], rest[1])
	case command == "move" && len(rest) == 4:
		return move(s, rest[0], rest[1], rest[2], rest[3], os.Stdout)
	case command == "random-fill-order" && len(rest) == 0:
		return randomFillOrder(os.Stdout)
	case command == "churn" && len(rest) == 1:
		return churn(s, rest[0], os.Stdin, os.Stdout)
	case command == "lock" && len(rest) == 1:
		return lock(s, rest[0], os.Stdin, os.Stdout)
	}
	return errUsage
}

func newFlags(command string) (*flag.FlagSet, *settings) {
	s := &settings{}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.IntVar(&s.pageSize, "page-size", 0, "page size of a new file")
	flags.BoolVar(&s.noFreelist, "no-freelist", false, "do not store the freelist")
	flags.StringVar(&s.freelist, "freelist", string(bolt.FreelistArrayType), "array or hashmap")
	flags.Float64Var(&s.fill, "fill", bolt.DefaultFillPercent, "fill percent of every bucket")
	flags.BoolVar(&s.digests, "digests", false, "print the file's hash after each commit")
	flags.Int64Var(&s.txMaxSize, "tx-max-size", 0, "bytes in a transaction of a compaction")
	flags.DurationVar(&s.timeout, "timeout", 10*time.Second, "how long to wait for the lock")
	flags.DurationVar(&s.giveUp, "give-up", 0, "end without an answer after that long")
	flags.BoolVar(&s.readOnly, "read-only", false, "take the shared lock")
	return flags, s
}

// openForWriting opens or makes a file. Nothing is synced: no test pulls the plug on this program, and what is written
// is the same. The file still grows the way it does for everybody, which NoGrowSync would change.
func openForWriting(s *settings, path string) (*bolt.DB, error) {
	return bolt.Open(path, 0o600, &bolt.Options{
		Timeout:        s.timeout,
		PageSize:       s.pageSize,
		NoFreelistSync: s.noFreelist,
		FreelistType:   bolt.FreelistType(s.freelist),
		NoSync:         true,
	})
}

func openForReading(s *settings, path string) (*bolt.DB, error) {
	return bolt.Open(path, 0o600, &bolt.Options{Timeout: s.timeout, ReadOnly: true})
}
