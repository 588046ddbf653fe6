package main

import "encoding/binary"

// poolBytes is how many bytes values are cut out of; see src/data.rs, which this file agrees with byte for byte.
const poolBytes = 1 << 16

// owned is how many entries of an owner there are in keys in clumps.
const owned = 100

// splitmix is the next number of a splitmix64 sequence after the state n.
func splitmix(n uint64) uint64 {
	x := n + 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// values makes values from their numbers: windows into one pool of random bytes.
type values struct {
	pool []byte
	len  uint64
}

func newValues(length uint64) values {
	words := (poolBytes + length + 7) / 8
	pool := make([]byte, 0, words*8)
	for n := range words {
		pool = binary.LittleEndian.AppendUint64(pool, splitmix(^n))
	}
	return values{pool, length}
}

// maker makes keys and values from their numbers. A key is valid until the next one is made.
type maker struct {
	kind string
	key  [16]byte
	values
}

func (m *maker) keyOf(n uint64) []byte {
	switch m.kind {
	case "sequential":
		binary.BigEndian.PutUint64(m.key[:8], n)
		return m.key[:8]
	case "random":
		binary.BigEndian.PutUint64(m.key[:8], splitmix(n))
		return m.key[:8]
	case "clumped":
		binary.BigEndian.PutUint64(m.key[:8], splitmix(n/owned))
		binary.BigEndian.PutUint64(m.key[8:], n)
		return m.key[:]
	default: // "random16"
		binary.BigEndian.PutUint64(m.key[:8], splitmix(n))
		binary.BigEndian.PutUint64(m.key[8:], splitmix(^n))
		return m.key[:]
	}
}

func (v values) valueOf(n uint64) []byte {
	start := splitmix(n) & (poolBytes - 1)
	return v.pool[start : start+v.len]
}
