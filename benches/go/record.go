package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5"
)

// A record is a user, whose fields follow from its number; see src/records/record.rs.
type record struct {
	ID          int64   `json:"id" msgpack:"id"`
	Username    string  `json:"username" msgpack:"username"`
	Email       string  `json:"email" msgpack:"email"`
	FirstName   string  `json:"first_name" msgpack:"first_name"`
	LastName    string  `json:"last_name" msgpack:"last_name"`
	Age         int32   `json:"age" msgpack:"age"`
	Height      float32 `json:"height" msgpack:"height"`
	Weight      float32 `json:"weight" msgpack:"weight"`
	Balance     float64 `json:"balance" msgpack:"balance"`
	IsActive    bool    `json:"is_active" msgpack:"is_active"`
	CreatedAt   int64   `json:"created_at" msgpack:"created_at"`
	UpdatedAt   int64   `json:"updated_at" msgpack:"updated_at"`
	LoginCount  int32   `json:"login_count" msgpack:"login_count"`
	Score       float64 `json:"score" msgpack:"score"`
	Description string  `json:"description" msgpack:"description"`
}

func newRecord(id int64) *record {
	below := func(field, limit uint64) uint64 { return splitmix(uint64(id)*16+field) % limit }
	created := 1_700_000_000 + int64(below(6, 10_000_000))
	return &record{
		ID:         id,
		Username:   fmt.Sprintf("user_%d", id),
		Email:      fmt.Sprintf("user%d@example.com", id),
		FirstName:  fmt.Sprintf("First_%d", id),
		LastName:   fmt.Sprintf("Last_%d", id),
		Age:        18 + int32(below(0, 60)),
		Height:     150 + float32(below(1, 500))/10,
		Weight:     50 + float32(below(2, 1000))/10,
		Balance:    float64(below(3, 1_000_000)) / 100,
		IsActive:   below(4, 2) == 1,
		CreatedAt:  created,
		UpdatedAt:  created + int64(below(5, 10_000_000)),
		LoginCount: int32(below(7, 1_000)),
		Score:      float64(below(8, 10_000)) / 100,
		Description: fmt.Sprintf("This is the description of user number %d, long enough to be a sentence that "+
			"somebody wrote about herself.", id),
	}
}

var errCut = errors.New("a record ends too early")

// A field of a record: how its bytes are appended, and taken from the front.
type field struct {
	name string
	put  func(r *record, out []byte) []byte
	take func(r *record, from []byte) ([]byte, error)
}

// number is a field of so many bytes, little-endian.
func number(name string, size int, get func(*record) uint64, set func(*record, uint64)) field {
	return field{
		name,
		func(r *record, out []byte) []byte {
			var bytes [8]byte
			binary.LittleEndian.PutUint64(bytes[:], get(r))
			return append(out, bytes[:size]...)
		},
		func(r *record, from []byte) ([]byte, error) {
			if len(from) < size {
				return nil, errCut
			}
			var bytes [8]byte
			copy(bytes[:], from[:size])
			set(r, binary.LittleEndian.Uint64(bytes[:]))
			return from[size:], nil
		},
	}
}

func int64Field(name string, at func(*record) *int64) field {
	return number(name, 8,
		func(r *record) uint64 { return uint64(*at(r)) }, func(r *record, n uint64) { *at(r) = int64(n) })
}

func int32Field(name string, at func(*record) *int32) field {
	return number(name, 4,
		func(r *record) uint64 { return uint64(uint32(*at(r))) }, func(r *record, n uint64) { *at(r) = int32(n) })
}

func float64Field(name string, at func(*record) *float64) field {
	return number(name, 8, func(r *record) uint64 { return math.Float64bits(*at(r)) },
		func(r *record, n uint64) { *at(r) = math.Float64frombits(n) })
}

func float32Field(name string, at func(*record) *float32) field {
	return number(name, 4, func(r *record) uint64 { return uint64(math.Float32bits(*at(r))) },
		func(r *record, n uint64) { *at(r) = math.Float32frombits(uint32(n)) })
}

func boolField(name string, at func(*record) *bool) field {
	return number(name, 1, func(r *record) uint64 {
		if *at(r) {
			return 1
		}
		return 0
	}, func(r *record, n uint64) { *at(r) = n != 0 })
}

// stringField is a field with its length in 2 bytes before it.
func stringField(name string, at func(*record) *string) field {
	return field{
		name,
		func(r *record, out []byte) []byte { return appendString(out, *at(r)) },
		func(r *record, from []byte) (rest []byte, err error) {
			*at(r), rest, err = takeString(from)
			return rest, err
		},
	}
}

func appendString(out []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(out, uint16(len(s))), s...)
}

func takeString(from []byte) (s string, rest []byte, err error) {
	if len(from) < 2 {
		return "", nil, errCut
	}
	end := 2 + int(binary.LittleEndian.Uint16(from))
	if len(from) < end {
		return "", nil, errCut
	}
	return string(from[2:end]), from[end:], nil
}

// fields are all of them, in order.
var fields = []field{
	int64Field("id", func(r *record) *int64 { return &r.ID }),
	stringField("username", func(r *record) *string { return &r.Username }),
	stringField("email", func(r *record) *string { return &r.Email }),
	stringField("first_name", func(r *record) *string { return &r.FirstName }),
	stringField("last_name", func(r *record) *string { return &r.LastName }),
	int32Field("age", func(r *record) *int32 { return &r.Age }),
	float32Field("height", func(r *record) *float32 { return &r.Height }),
	float32Field("weight", func(r *record) *float32 { return &r.Weight }),
	float64Field("balance", func(r *record) *float64 { return &r.Balance }),
	boolField("is_active", func(r *record) *bool { return &r.IsActive }),
	int64Field("created_at", func(r *record) *int64 { return &r.CreatedAt }),
	int64Field("updated_at", func(r *record) *int64 { return &r.UpdatedAt }),
	int32Field("login_count", func(r *record) *int32 { return &r.LoginCount }),
	float64Field("score", func(r *record) *float64 { return &r.Score }),
	stringField("description", func(r *record) *string { return &r.Description }),
}

func fieldOf(name string) (*field, error) {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i], nil
		}
	}
	return nil, fmt.Errorf("no record has a field %q", name)
}

// encode makes the value that holds a record, in layouts that have one.
func encode(layout string, r *record) (out []byte, err error) {
	switch layout {
	case "binary":
		for i := range fields {
			out = fields[i].put(r, out)
		}
		return out, nil
	case "binary-named":
		for i := range fields {
			out = fields[i].put(r, appendString(out, fields[i].name))
		}
		return out, nil
	case "json":
		return json.Marshal(r)
	case "message-pack":
		return msgpack.Marshal(r)
	}
	return nil, fmt.Errorf("no layout %q of one value", layout)
}

func decode(layout string, value []byte) (r *record, err error) {
	r = new(record)
	switch layout {
	case "binary":
		for i := range fields {
			if value, err = fields[i].take(r, value); err != nil {
				return nil, err
			}
		}
		return r, nil
	case "binary-named":
		for len(value) > 0 {
			var name string
			if name, value, err = takeString(value); err != nil {
				return nil, err
			}
			if value, err = takeNamed(r, name, value); err != nil {
				return nil, err
			}
		}
		return r, nil
	case "json":
		return r, json.Unmarshal(value, r)
	case "message-pack":
		return r, msgpack.Unmarshal(value, r)
	}
	return nil, fmt.Errorf("no layout %q of one value", layout)
}

func takeNamed(r *record, name string, value []byte) ([]byte, error) {
	f, err := fieldOf(name)
	if err != nil {
		return nil, err
	}
	return f.take(r, value)
}
