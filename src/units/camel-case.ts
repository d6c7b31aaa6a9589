/** `no_stream` is `noStream`. */
export type CamelCase<Name extends string> = Name extends `${infer Word}_${infer More}`
  ? `${Word}${Capitalize<CamelCase<More>>}`
  : Name;
