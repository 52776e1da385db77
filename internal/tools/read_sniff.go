package tools

import (
	"bytes"
	"unicode/utf8"
)

// sniffBytes is how much of a file decides what it is.
const sniffBytes = 64 << 10

// fileKind is what a file is by its content.
type fileKind uint8

const (
	kindText fileKind = iota
	kindImage
	kindPDF
	kindBinary
)

// magics are the beginnings of well-known binary formats.
var magics = []struct {
	offset       int
	magic, media string
	kind         fileKind
}{
	{0, "\x89PNG\r\n\x1a\n", "image/png", kindImage},
	{0, "\xff\xd8\xff", "image/jpeg", kindImage},
	{0, "GIF87a", "image/gif", kindImage},
	{0, "GIF89a", "image/gif", kindImage},
	{8, "WEBPVP8", "image/webp", kindImage},
	{0, "%PDF-", "application/pdf", kindPDF},
	{0, "\x7fELF", "ELF executable or library", kindBinary},
	{0, "\xfe\xed\xfa\xce", "Mach-O executable", kindBinary},
	{0, "\xfe\xed\xfa\xcf", "Mach-O executable", kindBinary},
	{0, "\xce\xfa\xed\xfe", "Mach-O executable", kindBinary},
	{0, "\xcf\xfa\xed\xfe", "Mach-O executable", kindBinary},
	{0, "\xca\xfe\xba\xbe", "Java class or Mach-O universal binary", kindBinary},
	{0, "MZ\x90\x00", "Windows executable", kindBinary},
	{0, "\x1f\x8b\x08", "gzip archive", kindBinary},
	{0, "BZh", "bzip2 archive", kindBinary},
	{0, "\xfd7zXZ\x00", "xz archive", kindBinary},
	{0, "\x28\xb5\x2f\xfd", "zstd archive", kindBinary},
	{0, "7z\xbc\xaf\x27\x1c", "7z archive", kindBinary},
	{0, "PK\x03\x04", "zip archive (or an Office document, a jar, ...)", kindBinary},
	{0, "Rar!\x1a\x07", "rar archive", kindBinary},
	{257, "ustar", "tar archive", kindBinary},
	{0, "!<arch>\n", "static library", kindBinary},
	{0, "SQLite format 3\x00", "SQLite database", kindBinary},
	{0, "\x00asm", "WebAssembly module", kindBinary},
	{0, "\x00\x00\x01\x00", "icon", kindBinary},
	{0, "OggS", "Ogg media", kindBinary},
	{0, "ID3", "MP3 audio", kindBinary},
	{0, "fLaC", "FLAC audio", kindBinary},
	{8, "WAVEfmt", "WAV audio", kindBinary},
	{4, "ftyp", "MP4 media", kindBinary},
	{0, "\x1aE\xdf\xa3", "Matroska or WebM media", kindBinary},
	{0, "wOFF", "web font", kindBinary},
	{0, "wOF2", "web font", kindBinary},
	{0, "PAR1", "Parquet table", kindBinary},
}

// sniff tells what a file is from its first bytes: its kind, and the type in
// words (the media type of an image).
func sniff(head []byte) (fileKind, string) {
	enc := detectBOM(head)
	if enc != encUTF8 {
		return kindText, enc.String()
	}
	for _, m := range magics {
		if len(head) > m.offset && bytes.HasPrefix(head[m.offset:], []byte(m.magic)) {
			if isPlainText(head) && (m.kind == kindBinary) {
				break // text that happens to begin like that ("BZh...", "ID3...")
			}
			return m.kind, m.media
		}
	}
	if looksBinary(head) {
		return kindBinary, "unknown binary data" + wideHint(head)
	}
	return kindText, enc.String()
}

// looksBinary reports whether text is out of the question: many control
// characters, or NULs among bytes that aren't UTF-8.
func looksBinary(head []byte) bool {
	nul, control := 0, 0
	for _, c := range head {
		switch {
		case c == 0:
			nul++
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\b' && c != 0x1b:
			control++
		}
	}
	if nul+control == 0 {
		return false
	}
	share := (nul + control) * 100 / len(head)
	if utf8.Valid(trimPartialRune(head)) {
		return share > 30
	}
	return nul > 0 || share > 10
}

func isPlainText(head []byte) bool {
	return bytes.IndexByte(head, 0) < 0 && utf8.Valid(trimPartialRune(head)) && !looksBinary(head)
}

// trimPartialRune cuts a character that the end of the sample splits.
func trimPartialRune(b []byte) []byte {
	for i := 1; i <= 3 && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// wideHint recognises UTF-16 without a byte order mark, by where its NULs are.
func wideHint(head []byte) string {
	if len(head) < 8 {
		return ""
	}
	var nul [2]int
	for i, c := range head {
		if c == 0 {
			nul[i%2]++
		}
	}
	switch half := len(head) / 2; {
	case nul[1] > half*7/10 && nul[0] <= half/10:
		return " (it looks like UTF-16LE without a byte order mark)"
	case nul[0] > half*7/10 && nul[1] <= half/10:
		return " (it looks like UTF-16BE without a byte order mark)"
	}
	return ""
}
