package streamjson

import (
	"crypto/rand"
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
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// NewUUID is a random (version 4) UUID.
func NewUUID() string { return string(AppendUUID(make([]byte, 0, 36))) }
