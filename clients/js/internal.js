/**
 * Members that only the sources know: the build gives them short names. What a page may use
 * (src/*.d.ts), or a document, state or message holds, must never be among them: a test sees to it.
 */
export const INTERNAL = [
  // campaigns and clients
  "domain", "indexOfValue", "labelOf", "plain", "restore", "wanted",
  // encodings and hash families
  "answerFrom", "answerPlain", "answerText", "certain", "draw", "drawKey", "isAnswer", "isKey",
  "keyFrom", "memoCells", "memoIndex", "memoSymbols", "width",
  // protocols
  "drawTable", "encoding", "encodingOf", "firstOf", "parameters", "secondOf", "spentBy",
  // the sender and its requests
  "after", "ask", "isCounted", "isRefused", "json", "send", "settled", "stop",
];
