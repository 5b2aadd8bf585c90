/**
 * Members that only the sources know: the build gives them short names. What a page may use
 * (src/*.d.ts), or a document, state or message holds, must never be among them: a test sees to it.
 */
export const INTERNAL = [
  // campaigns and clients
  "domain", "plain", "restore",
  // encodings and hash families
  "answerFrom", "answerPlain", "answerText", "draw", "drawKey", "isAnswer", "isKey", "keyBits",
  "keyBytes", "keyFrom", "keyPlain", "memoCells", "memoIndex", "memoSymbols", "width",
  // protocols
  "checkValue", "encoding", "enroll", "instant", "joint", "optional", "parameters", "permanent",
  "remember",
  // the sender and its requests
  "after", "isProblem", "json", "largest", "left", "media", "patience", "refusal", "settled",
  "spentBefore", "stop", "tell", "withdrawn",
];
