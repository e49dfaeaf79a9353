/** Arrays of text as parameters in PostgreSQL's binary form, in which nothing has to be escaped here and taken apart there. */

const textOid = 25;
const headerBytes = 20;

/** For a parameter of the type `text[]` that holds at least one value. */
export const textArray = (values: readonly (string | null | undefined)[]): Buffer => {
  const lengths = values.map((text) => (text == null ? -1 : Buffer.byteLength(text)));
  const array = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + Math.max(length, 0), headerBytes));
  let end = 0;
  for (const word of [1, lengths.includes(-1) ? 1 : 0, textOid, values.length, 1]) end = array.writeInt32BE(word, end);
  for (const [index, text] of values.entries()) {
    end = array.writeInt32BE(lengths[index]!, end);
    if (text != null) end += array.write(text, end);
  }
  return array;
};
