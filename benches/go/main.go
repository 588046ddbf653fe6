// Command gopeers measures engines that are written in Go: it does one work on one engine and tells what it cost, as
// the workers of the Rust program beside it do. It must make the same keys and values as they (data.go), read the same
// works (work.go), and time the same (worker.go).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

const usage = `usage: gopeers ENGINE[+FREELIST] FOLDER   do the work that standard input holds, as JSON
       gopeers data KEYS VALUEBYTES COUNT     print the first keys and values, in hex
       gopeers versions                       print the engines' versions, as JSON`

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 4 && args[0] == "data":
		err = printData(args[1], args[2], args[3])
	case len(args) == 1 && args[0] == "versions":
		err = tell(versions())
	case len(args) == 2:
		if err = measure(args[0], args[1]); err != nil {
			err = tell(map[string]string{"failed": err.Error()})
		}
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(contestant, folder string) error {
	var w work
	if err := json.NewDecoder(os.Stdin).Decode(&w); err != nil {
		return err
	}
	open := func() (engine, error) { return open(contestant, folder, w.Synced) }
	engine, err := open()
	if err != nil {
		return err
	}
	j := job{engine, open, folder, w, newValues(w.ValueBytes)}
	for _, s := range w.Stages {
		d, err := j.step(s)
		if err != nil {
			return err
		}
		if s.Figure == nil {
			continue
		}
		bytes, err := folderBytes(folder)
		if err != nil {
			return err
		}
		c := cost{*s.Figure, d.operations, d.time.Seconds(), d.witness, bytes}
		if err := tell(map[string]cost{"cost": c}); err != nil {
			return err
		}
	}
	used, err := j.engine.usedBytes()
	if err != nil {
		return err
	}
	if err := tell(map[string]uint64{"done": used}); err != nil {
		return err
	}
	holds, err := j.contents()
	if err != nil || holds == nil {
		return err
	}
	return tell(map[string]*contents{"holds": holds})
}

// engines opens each engine that was built in.
var engines = map[string]func(folder, freelist string, synced bool) (engine, error){"bbolt": openBbolt}

func open(contestant, folder string, synced bool) (engine, error) {
	name, freelist, _ := strings.Cut(contestant, "+")
	openEngine, ok := engines[name]
	if !ok {
		return nil, fmt.Errorf("no engine %q in the Go program", name)
	}
	return openEngine(folder, freelist, synced)
}

func versions() map[string]string {
	found := map[string]string{"go": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			found[module.Path] = module.Version
		}
	}
	return found
}

func printData(kind, valueBytes, count string) error {
	length, err := strconv.ParseUint(valueBytes, 10, 64)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(count, 10, 64)
	if err != nil {
		return err
	}
	m := maker{kind: kind, values: newValues(length)}
	for i := range n {
		fmt.Printf("%x %x\n", m.keyOf(i), m.valueOf(i))
	}
	return nil
}

func tell(what any) error { return json.NewEncoder(os.Stdout).Encode(what) }
