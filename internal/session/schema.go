package session

// QwenFrames returns an empty frame of each kind that the qwen dialect has in a
// form of its own, by type and subtype: what the protocol's schema is made of.
// Its other stream events, and its control frames, are those of package
// streamjson.
func QwenFrames() map[string]any {
	return map[string]any{
		"system.init":                qwenInit{},
		"system.other":               qwenSystem{},
		"assistant":                  qwenAssistant{},
		"user":                       qwenUser{},
		"result":                     qwenResult{},
		"stream_event.message_start": qwenMessageStart{},
	}
}
