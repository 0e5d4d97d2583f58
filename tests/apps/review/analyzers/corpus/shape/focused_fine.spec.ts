describe("basket", () => {
  it("fits only one item", () => {
    const fit = benefit(1);
    expect(fit).toBe(true);
  });
});
