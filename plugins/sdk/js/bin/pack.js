// Embeds the manifest in a component, as the last custom section.

const NAME = Buffer.from('tollhouse:manifest');

/** Returns the component with the manifest embedded. */
export function packed(component, manifest) {
  const section = Buffer.concat([leb(NAME.length), NAME, manifest]);
  return Buffer.concat([component, Buffer.of(0), leb(section.length), section]);
}

/** Encodes a number as unsigned LEB128. */
function leb(number) {
  const bytes = [];
  for (; number > 0x7f; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  return Buffer.from([...bytes, number]);
}
