package streamjson

import "bytes"

// members calls yield with each key (still quoted and escaped) and raw value of
// obj until it returns false. obj must be valid, compact JSON; anything but an
// object has no members.
func members(obj []byte, yield func(key, value []byte) bool) {
	if len(obj) < 2 || obj[0] != '{' {
		return
	}
	for i := 1; i < len(obj) && obj[i] == '"'; {
		keyEnd := skipValue(obj, i)
		valueEnd := skipValue(obj, keyEnd+1)
		if !yield(obj[i:keyEnd], obj[keyEnd+1:valueEnd]) {
			return
		}
		i = valueEnd + 1
	}
}

// member is the raw value of obj's member with the given quoted key, nil when
// there is none or more than one.
func member(obj []byte, quotedKey string) []byte {
	var found []byte
	count := 0
	members(obj, func(key, value []byte) bool {
		if string(key) == quotedKey {
			found = value
			count++
		}
		return true
	})
	if count != 1 {
		return nil
	}
	return found
}

// skipValue is the index after the value that starts at b[i], in valid compact
// JSON.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth <= 0 {
				// Below 0 it is the bracket around a number or literal.
				return i + 1 + min(depth, 0)
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// skipString is the index after the string that starts at b[i].
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n + 1
		slashes := 0
		for j := i - 2; j >= 0 && b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return i
}

// tooDeep is the offset at which line's nesting exceeds MaxDepth, or -1. The
// line need not be valid.
func tooDeep(line []byte) int {
	if bytes.Count(line, []byte{'['})+bytes.Count(line, []byte{'{'}) <= MaxDepth {
		return -1
	}
	depth := 0
	for i := 0; i < len(line); {
		switch line[i] {
		case '"':
			i = skipString(line, i)
			continue
		case '{', '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return -1
}
