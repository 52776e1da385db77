package streamjson

// SendText queues text, which is no message, and a newline, for outputs that
// people read. Like Send it returns at once; the error says why nothing can be
// written any more. text goes out as it is, in one write.
func (w *Writer) SendText(text string) error {
	line := make([]byte, 0, len(text)+1)
	line = append(append(line, text...), '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusal(); err != nil {
		return err
	}
	w.open = w.open[:0]
	w.push(entry{line: line})
	return nil
}
