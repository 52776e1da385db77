package streamjson

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
)

// entropy is a buffer of random bytes, so that a UUID costs no system call.
type entropy struct {
	buf [1024]byte
	off int // bytes of buf already used
}

var entropyPool = sync.Pool{New: func() any { return &entropy{off: len(entropy{}.buf)} }}

// AppendUUID appends a random (version 4) UUID in its 36-character form. It is
// made from crypto/rand and safe for concurrent use.
func AppendUUID(dst []byte) []byte {
	e := entropyPool.Get().(*entropy)
	if e.off == len(e.buf) {
		rand.Read(e.buf[:]) // never fails: the runtime ends the process instead
		e.off = 0
	}
	var u [16]byte
	copy(u[:], e.buf[e.off:])
	clear(e.buf[e.off : e.off+16])
	e.off += 16
	entropyPool.Put(e)

	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[0:8], u[0:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:36], u[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return append(dst, text[:]...)
}

// NewUUID is a random (version 4) UUID.
func NewUUID() string { return string(AppendUUID(make([]byte, 0, 36))) }
