"""Reading machine code: the loop over visible tiles, and the instructions between its waits."""

import pytest

pytest.importorskip("triton")

from benchmarks.machine_code import early_exponentials, visible_tile_loop

CODE = """
.text.kernel:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/              @!P0 BRA `(.L_x_9) ;
        /*0020*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT ;
.L_x_2:
        /*0030*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT ;
        /*0040*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0050*/                   MUFU.EX2 R5, R5 ;
        /*0060*/              @P1  MUFU.LG2 R6, R6 ;
        /*0070*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0080*/                   MUFU.EX2 R7, R7 ;
        /*0090*/               @P2 MUFU.EX2 R8, R8 ;
        /*00a0*/               @P3 BRA `(.L_x_2) ;
.L_x_3:
        /*00b0*/                   FADD R1, R1, R2 ;
        /*00c0*/               @P3 BRA `(.L_x_3) ;
        /*00d0*/                   BRA `(.L_x_1) ;
.L_x_9:
        /*10000*/                  EXIT ;
"""


def test_the_loop_over_visible_tiles() -> None:
    """Not the enclosing loop, and none without a product; a forward branch is no loop."""
    loop = visible_tile_loop(CODE)
    assert loop[0] == "HGMMA.64x128x16.F32.BF16"
    assert loop[-1] == "BRA"
    assert len(loop) == 8
    assert visible_tile_loop(CODE.replace("HGMMA", "FADD")) == []


def test_a_loop_over_two_tiles_counts_per_product() -> None:
    product = "        /*0031*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT ;\n"
    masked = product + 8 * "        /*0032*/                   FSEL R1, R1, R2, P0 ;\n"
    code = CODE.replace(".L_x_3:\n", f".L_x_3:\n{masked}").replace("gsb0, 0x1 ;\n", f"gsb0, 0x1 ;\n{product}")
    assert "FSEL" not in visible_tile_loop(code)
    assert len(visible_tile_loop(code)) == 9


def test_share_of_early_exponentials() -> None:
    assert early_exponentials(visible_tile_loop(CODE)) == pytest.approx(1 / 3)
    assert early_exponentials([]) is None
