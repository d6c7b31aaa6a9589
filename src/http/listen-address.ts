export interface ListenAddress {
  readonly hostname: string;
  readonly port: number;
  /** Several processes listen on it. */
  readonly shared: boolean;
}
