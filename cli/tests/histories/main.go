// Reads a history of what clients asked of keys and what they were told, a JSON object a line, and says whether there is
// an order in which each request was done at one moment between its call and its return. Ends with 1 where there is none,
// and names a key.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

// A request, and its answer.
type event struct {
	Client int    `json:"client"`
	Key    string `json:"key"`
	// get, set, delete, swap (from Old to Arg), add
	Op   string  `json:"op"`
	Arg  string  `json:"arg"`
	Old  string  `json:"old"`
	Call int64   `json:"call"`
	Back int64   `json:"back"`
	Out  *string `json:"out"`
	// Whether it was done (swap), or the key was there (delete).
	Done bool `json:"done"`
	// No answer came: it may have been done at any time since, or never.
	Unknown bool `json:"unknown"`
}

// The value of a key; nil where it is not there.
type state struct {
	there bool
	value string
}

func step(before state, e event) (bool, state) {
	after := state{true, e.Arg}
	switch e.Op {
	case "get":
		if e.Out == nil {
			return !before.there, before
		}
		return before.there && before.value == *e.Out, before
	case "set":
		return true, after
	case "delete":
		return e.Unknown || e.Done == before.there, state{}
	case "swap":
		matches := before.there && before.value == e.Old
		if !matches {
			after = before
		}
		return e.Unknown || e.Done == matches, after
	case "add":
		delta, err := strconv.ParseInt(e.Arg, 10, 64)
		if err != nil {
			return false, before
		}
		var number int64
		if before.there {
			if number, err = strconv.ParseInt(before.value, 10, 64); err != nil {
				return false, before
			}
		}
		sum := strconv.FormatInt(number+delta, 10)
		return e.Unknown || (e.Out != nil && *e.Out == sum), state{true, sum}
	}
	return false, before
}

func main() {
	model := porcupine.Model{
		Init:  func() any { return state{} },
		Step:  func(s, in, _ any) (bool, any) { return unpack(step(s.(state), in.(event))) },
		Equal: func(one, other any) bool { return one == other },
	}
	histories := map[string][]porcupine.Operation{}
	events := 0
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		if e.Unknown {
			e.Back = math.MaxInt64
		}
		events++
		operation := porcupine.Operation{ClientId: e.Client, Input: e, Call: e.Call, Return: e.Back}
		histories[e.Key] = append(histories[e.Key], operation)
	}
	for key, history := range histories {
		switch porcupine.CheckOperationsTimeout(model, history, time.Minute) {
		case porcupine.Illegal:
			fmt.Printf("no order explains what was seen of %s in %d requests\n", key, len(history))
			os.Exit(1)
		case porcupine.Unknown:
			fmt.Printf("undecided after a minute: %s, %d requests\n", key, len(history))
			os.Exit(2)
		}
	}
	fmt.Printf("%d requests of %d keys have an order\n", events, len(histories))
}

func unpack(ok bool, s state) (bool, any) { return ok, s }
