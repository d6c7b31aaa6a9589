/** Closes what a test file has opened, one after another: first the user of the next. */
export async function closeAll(...opened: readonly { close(): unknown }[]): Promise<void> {
  for (const one of opened) await one.close();
}
