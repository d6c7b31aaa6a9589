/** Somewhere to wait until somebody says so: how tests and fakes keep step without sleeping. */
export interface Gate<Value> {
  readonly passed: Promise<Value>;
  open(value: Value): void;
}

export function gate<Value = void>(): Gate<Value> {
  const { promise, resolve } = Promise.withResolvers<Value>();
  return { passed: promise, open: resolve };
}
