package main

// A work as src/work.rs has it.
type work struct {
	Name       string  `json:"name"`
	Keys       string  `json:"keys"`
	ValueBytes uint64  `json:"value_bytes"`
	Synced     bool    `json:"synced"`
	Stages     []stage `json:"stages"`
}

type stage struct {
	Figure  *string `json:"figure"`
	Step    string  `json:"step"`
	Picks   picks   `json:"picks"`
	Batch   uint64  `json:"batch"`
	Nested  bool    `json:"nested"`
	Threads uint64  `json:"threads"`
	Times   uint64  `json:"times"`
	Chore   string  `json:"chore"`
	Layout  string  `json:"layout"`
	Task    string  `json:"task"`
	Count   uint64  `json:"count"`
}

type picks struct {
	From        uint64 `json:"from"`
	Count       uint64 `json:"count"`
	Stride      uint64 `json:"stride"`
	RandomBelow uint64 `json:"random_below"`
}

// number is the at-th of the picked numbers.
func (p picks) number(at uint64) uint64 {
	n := p.From + at*p.Stride
	if p.RandomBelow == 0 {
		return n
	}
	return splitmix(n) % p.RandomBelow
}

// Contents as src/work.rs has them.
type contents struct {
	Entries uint64 `json:"entries"`
	Hash    uint64 `json:"hash"`
}

// A cost as src/work.rs has it.
type cost struct {
	Figure     string  `json:"figure"`
	Operations uint64  `json:"operations"`
	Seconds    float64 `json:"seconds"`
	Witness    uint64  `json:"witness"`
	FileBytes  uint64  `json:"file_bytes"`
}
