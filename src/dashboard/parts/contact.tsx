/** The operator, as a link where the configuration says how they are reached. */
export const Operator = ({ contact }: { contact: string | null }) =>
  contact === null ? (
    <>the operator of this gateway</>
  ) : (
    <a href={contact} rel="noreferrer">
      the operator of this gateway
    </a>
  );
