/**
 * The operator in a sentence, with the `contact` of the configuration: an address of a page, or of a mailbox
 * with `mailto:`; null where it names none. In brackets, because a full stop right behind an address would be
 * taken for a part of it.
 */
export const operatorAt = (contact: string | null): string =>
  contact === null
    ? "the operator of this gateway"
    : `the operator of this gateway (${contact.replace(/^mailto:/, "")})`;
