/** The same parts, of which some are others: also of a class, whose methods a copy would lose. */
export const overriding = <Parts extends object>(parts: Parts, others: Partial<Parts>): Parts =>
  new Proxy(parts, { get: (target, name) => Reflect.get(name in others ? others : target, name) });
